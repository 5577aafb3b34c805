// Draws figures as SVG: a card with a title, a drawing and a note; light or dark as the reader's scheme.

export type Drawing = {
  readonly svg: string;
  /** The alternative text of the pages: one sentence. Its data is in the file, and in the table next to it. */
  readonly alt: string;
};

export type Card = {
  readonly title: string;
  readonly note: string;
  /** Its data in words, in the file. */
  readonly data: string;
  /** For the pages. Default: the title. */
  readonly alt?: string;
  /** From the first free line below the title. @returns its parts, and the first free line below them */
  readonly draw: (top: number) => { readonly parts: readonly string[]; readonly bottom: number };
};

/** Of the card, with its margins. */
const WIDTH = 880;
const MARGIN = 20;
/** What may be drawn on reaches from MARGIN to here. */
export const RIGHT = WIDTH - MARGIN;
export const LEFT = MARGIN;
const BAR_HEIGHT = 16;
/** Between the drawing and the note. */
const NOTE_GAP = 18;
const NOTE_CHARACTERS = 126;

/** Writes a card as a whole file. */
export function drawCard({ title, note, data, alt = title, draw }: Card): Drawing {
  const { parts, bottom } = draw(MARGIN + 26);
  const lines = wrapText(note);
  const notes = lines.map((line, index) => text(LEFT, bottom + NOTE_GAP + index * 17, line, 'note'));
  const height = Math.ceil(bottom + NOTE_GAP + lines.length * 17);
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title data">
<title id="title">${escapeXml(title)}</title>
<desc id="data">${escapeXml(data)}</desc>
<style>
text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 }
.head, .note { fill: #59636e; font-size: 12px }
.own { font-weight: 600 }
.bad { fill: #b42318; font-weight: 600 }
rect { fill: #a5adb8 }
rect.own { fill: #0969da }
rect.card { fill: #ffffff; stroke: #d1d9e0 }
line { stroke: #818b98 }
line.scrape { stroke-dasharray: 3 3 }
line.own { stroke: #0969da; stroke-width: 2 }
path.own, circle.own { fill: #0969da }
path.bad { stroke: #b42318; stroke-width: 2; fill: none }
circle { fill: #59636e }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.head, .note { fill: #9198a1 }
.bad { fill: #ff7b72 }
rect { fill: #656c76 }
rect.own { fill: #4493f8 }
rect.card { fill: #0d1117; stroke: #3d444d }
line { stroke: #818b98 }
line.own { stroke: #4493f8 }
path.own, circle.own { fill: #4493f8 }
path.bad { stroke: #ff7b72; fill: none }
circle { fill: #9198a1 }
}
</style>
<rect class="card" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="6"/>
${[text(LEFT, MARGIN + 12, title, 'title'), ...parts, ...notes].join('\n')}
</svg>
`;
  return { svg, alt };
}

/** A horizontal bar, from its upper left corner. */
export function bar(x: number, y: number, length: number, className = ''): string {
  return `<rect x="${round(x)}" y="${round(y)}" width="${round(length)}" height="${BAR_HEIGHT}" rx="1"${attribute(className)}/>`;
}

export function line(fromX: number, fromY: number, toX: number, toY: number, className = ''): string {
  return `<line x1="${round(fromX)}" y1="${round(fromY)}" x2="${round(toX)}" y2="${round(toY)}"${attribute(className)}/>`;
}

/** A line of text; `anchor` says what of it is at x. */
export function text(
  x: number,
  y: number,
  content: string,
  className = '',
  anchor: 'start' | 'middle' | 'end' = 'start',
): string {
  const place = anchor === 'start' ? '' : ` text-anchor="${anchor}"`;
  return `<text x="${round(x)}" y="${round(y)}"${place}${attribute(className)}>${escapeXml(content)}</text>`;
}

function attribute(className: string): string {
  return className === '' ? '' : ` class="${className}"`;
}

function wrapText(content: string): string[] {
  const lines: string[] = [''];
  for (const word of content.split(' ')) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (longer.length > NOTE_CHARACTERS) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escapeXml(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
