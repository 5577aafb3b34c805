// The version, as `--version`, the log, the report and the User-Agent give it. A test holds it against package.json.

export const VERSION = '0.1.0';
