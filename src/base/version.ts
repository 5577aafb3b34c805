// The version, as `--version`, the log, the report and the User-Agent give it. A test holds it against package.json.

declare const LASTSCRAPE_COMMIT: string | undefined;

export const VERSION = '0.1.0';

/** The User-Agent of every request. */
export const USER_AGENT = `lastscrape/${VERSION}`;

/** Where a bug is reported; a repository of its own may be named by whoever publishes one. */
export const REPORT_BUGS_TO =
  'in the issues of the repository that it was built from, with this line, lastscrape --version and the variables without secrets';

/** The commit that the binary was built from (image/bundle.ts puts it in); null where the sources run as they are. */
export const COMMIT = typeof LASTSCRAPE_COMMIT === 'undefined' ? null : LASTSCRAPE_COMMIT;
