// The numbers that a TCP port may have. A leaf.

const PORT_MAX = 65_535;

/** Whether the digits are a port from 1 to 65535. */
export function isPortNumber(digits: string): boolean {
  return /^\d{1,5}$/.test(digits) && Number(digits) >= 1 && Number(digits) <= PORT_MAX;
}

/** What is to be added to "must be …" where a port of the text is above 65535; empty where none is. */
export function describeHighPort(text: string): string {
  const high = [...text.matchAll(/(?<=^|:)\d+(?=[:/?#]|$)/g)]
    .map(([digits]) => digits)
    .find((digits) => Number(digits) > PORT_MAX);
  return high === undefined ? '' : `; ${high.slice(0, 20)} is above the highest port, ${PORT_MAX}`;
}
