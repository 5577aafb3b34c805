// The version, for `--version`, log, report and User-Agent. A test compares it with package.json.

declare const LASTSCRAPE_COMMIT: string | undefined;

export const VERSION = '0.1.0';

/** The User-Agent of every request. */
export const USER_AGENT = `lastscrape/${VERSION}`;

/** Where to report a bug; a publisher may name a repository here. */
export const REPORT_BUGS_TO =
  'in the issues of the repository that it was built from, with this line, lastscrape --version and the variables without secrets';

/** The commit of the binary (from image/bundle.ts); null when run from the sources. */
export const COMMIT = typeof LASTSCRAPE_COMMIT === 'undefined' ? null : LASTSCRAPE_COMMIT;
