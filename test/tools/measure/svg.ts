// Draws tables of bars as SVG: rows are what is compared, each column has a scale of its own unless it is told one. No background and no script;
// the colours follow the reader's light or dark scheme, also inside an <img>.

/** One figure. */
export type Figure = { readonly title: string; readonly note: string; readonly blocks: readonly Block[] };

/** Rows that share their columns. */
export type Block = { readonly columns: readonly Column[]; readonly rows: readonly Row[] };

/** `longest` is the value that fills the column; without it, the largest one in it. */
export type Column = { readonly title: string; readonly longest?: number };

/** `isOwn` rows are coloured. */
export type Row = { readonly label: string; readonly isOwn: boolean; readonly cells: readonly Cell[] };

/**
 * `value` is the length of the bar, 0 or more, in the unit of its column, and without it there is no bar; `text` is what stands
 * beside it. `isOther`: not coloured, although its row is.
 */
export type Cell = { readonly value: number | undefined; readonly text: string; readonly isOther?: boolean };

const WIDTH = 840;
const LABEL_WIDTH = 190;
const ROW_HEIGHT = 26;
const HEAD_HEIGHT = 30;
const BLOCK_GAP = 18;
/** Room for the text beside the longest bar. */
const TEXT_WIDTH = 84;
const COLUMN_GAP = 16;
const NOTE_CHARACTERS = 126;

/** Writes the figure as a whole file. */
export function writeSvg({ title, note, blocks }: Figure): string {
  const parts: string[] = [];
  let y = 28;
  parts.push(text(0, y, title, 'title'));
  y += 14;
  for (const block of blocks) {
    y += BLOCK_GAP;
    parts.push(...drawBlock(block, y));
    y += HEAD_HEIGHT + block.rows.length * ROW_HEIGHT;
  }
  y += BLOCK_GAP;
  for (const line of wrapText(note)) {
    parts.push(text(0, y, line, 'note'));
    y += 17;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" role="img" aria-label="${escapeXml(title)}">
<style>
text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 }
.head, .note { fill: #59636e; font-size: 12px }
.own { font-weight: 600 }
rect { fill: #a5adb8 }
rect.own { fill: #0969da }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.head, .note { fill: #9198a1 }
rect { fill: #656c76 }
rect.own { fill: #4493f8 }
}
</style>
${parts.join('\n')}
</svg>
`;
}

function drawBlock({ columns, rows }: Block, top: number): string[] {
  const columnWidth = (WIDTH - LABEL_WIDTH) / columns.length;
  const barWidth = columnWidth - TEXT_WIDTH - COLUMN_GAP;
  const parts = columns.map((column, index) => text(LABEL_WIDTH + index * columnWidth, top + 14, column.title, 'head'));
  const longest = columns.map(
    (column, index) => column.longest ?? Math.max(...rows.map((row) => row.cells[index]?.value ?? 0)),
  );
  for (const [rowIndex, row] of rows.entries()) {
    const y = top + HEAD_HEIGHT + rowIndex * ROW_HEIGHT;
    const own = row.isOwn ? 'own' : '';
    parts.push(text(0, y + 12, row.label, own));
    for (const [index, cell] of row.cells.entries()) {
      const x = LABEL_WIDTH + index * columnWidth;
      const cellOwn = cell.isOther ? '' : own;
      if (cell.value === undefined) {
        parts.push(text(x, y + 12, cell.text, cellOwn));
        continue;
      }
      const share = cell.value / (longest[index] || 1);
      // One pixel stands for 0, so that it is seen to be there.
      const length = Math.max(1, Math.round(share * barWidth));
      parts.push(`<rect x="${round(x)}" y="${y}" width="${length}" height="16" rx="1"${cellOwn && ' class="own"'}/>`);
      parts.push(text(x + length + 6, y + 12, cell.text, cellOwn));
    }
  }
  return parts;
}

function text(x: number, y: number, content: string, className: string): string {
  const attribute = className === '' ? '' : ` class="${className}"`;
  return `<text x="${round(x)}" y="${y}"${attribute}>${escapeXml(content)}</text>`;
}

function wrapText(content: string): string[] {
  const lines: string[] = [''];
  for (const word of content.split(' ')) {
    const line = `${lines.at(-1)} ${word}`.trim();
    if (line.length > NOTE_CHARACTERS) lines.push(word);
    else lines[lines.length - 1] = line;
  }
  return lines;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escapeXml(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
