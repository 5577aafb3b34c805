// Finds what can be changed in a source by one token (or by swapping the branches of a `?:`) and still
// type-checks, in the compiler's syntax tree.

import { type Node, type SourceFile, SyntaxKind } from 'typescript/unstable/ast';
import { API, type Checker, TypeFlags } from 'typescript/unstable/sync';

export type Mutant = {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  /** Where in the file the token is, counted from 0. */
  readonly start: number;
  /** The function, class or constant at the top level that it is in. */
  readonly within: string;
  readonly token: string;
  readonly replacement: string;
  /** The lines before and after, white space made one. */
  readonly was: string;
  readonly is: string;
  /** The whole file after it. */
  readonly text: string;
};

/** A change before it is applied: from `start` to `end` stands `replacement`. */
type Change = { readonly start: number; readonly end: number; readonly replacement: string };

const OPERATORS: Readonly<Record<string, readonly string[]>> = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '===': ['!=='],
  '!==': ['==='],
  '&&': ['||'],
  '||': ['&&', '??'],
  '??': ['||'],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '+=': ['-='],
  '-=': ['+='],
  '++': ['--'],
  '--': ['++'],
};

const NAMES: Readonly<Record<string, string>> = {
  min: 'max',
  max: 'min',
  some: 'every',
  every: 'some',
  floor: 'ceil',
  ceil: 'floor',
  startsWith: 'endsWith',
  endsWith: 'startsWith',
  true: 'false',
  false: 'true',
};

/** The mutants of `files` in the project at `root`, without those that do not type-check. */
export class MutantFinder implements Disposable {
  readonly #root: string;
  readonly #texts = new Map<string, string>();
  readonly #api: API;

  constructor(root: string) {
    this.#root = root;
    this.#api = new API({ cwd: root, fs: { readFile: (path) => this.#texts.get(path) } });
    this.#api.updateSnapshot({ openProjects: [`${root}/tsconfig.json`] });
  }

  /** Every mutant of a file, in the order of the text; most of them type-check. */
  find(file: string): Mutant[] {
    const changed = [...this.#texts.keys()];
    this.#texts.clear();
    const { program, checker } = this.#openProject(changed);
    const source = program.getSourceFile(`${this.#root}/${file}`);
    if (source === undefined) throw new Error(`Cannot read ${file}: it is not in tsconfig.json`);
    const { text } = source;
    const words = new Set<string>();
    visit(source, (node) => {
      if (isWord(node)) words.add(node.text);
    });
    const mutants: Mutant[] = [];
    visit(source, (node, within) => {
      for (const { start, end, replacement } of listChanges(node, source, checker, [...words])) {
        const from = text.lastIndexOf('\n', start - 1) + 1;
        const to = text.indexOf('\n', end);
        const was = text.slice(from, to);
        const is = text.slice(from, start) + replacement + text.slice(end, to);
        mutants.push({
          file,
          line: text.slice(0, start).split('\n').length,
          start,
          within,
          token: squeeze(text.slice(start, end)),
          replacement: squeeze(replacement),
          was: squeeze(was),
          is: squeeze(is),
          text: text.slice(0, start) + replacement + text.slice(end),
        });
      }
    });
    return mutants;
  }

  /** Whether its file has no error of type with it. */
  isTyped({ file, text }: Mutant): boolean {
    const path = `${this.#root}/${file}`;
    const changed = [...this.#texts.keys(), path];
    this.#texts.clear();
    this.#texts.set(path, text);
    const { program } = this.#openProject(changed);
    return program.getSyntacticDiagnostics(path).length + program.getSemanticDiagnostics(path).length === 0;
  }

  #openProject(changed: string[]) {
    const snapshot = this.#api.updateSnapshot({ fileChanges: { changed } });
    const [project] = snapshot.getProjects();
    if (project === undefined) throw new Error(`Cannot open the project at ${this.#root}: the compiler shows none`);
    return project;
  }

  [Symbol.dispose](): void {
    this.#api.close();
  }
}

/** Calls `act` for every node of the code, those of types and imports left out. */
function visit(source: SourceFile, act: (node: Node, within: string) => void): void {
  const descend = (node: Node, within: string): void => {
    if (isErased(node)) return;
    act(node, within);
    node.forEachChild((child) => {
      descend(child, within);
      return undefined;
    });
  };
  for (const statement of source.statements) descend(statement, readName(statement));
}

const ERASED = new Set([
  SyntaxKind.ImportDeclaration,
  SyntaxKind.InterfaceDeclaration,
  SyntaxKind.TypeAliasDeclaration,
  SyntaxKind.TypeParameter,
]);

function isErased({ kind }: Node): boolean {
  return ERASED.has(kind) || (kind >= SyntaxKind.FirstTypeNode && kind <= SyntaxKind.LastTypeNode);
}

function readName(statement: Node): string {
  return /(?:function\*?|class|const|let)\s+(\w+)/.exec(statement.getText())?.[1] ?? '';
}

/** A string that may be a member of a union, or a name in a protocol; not a sentence. */
function isWord(node: Node): node is Node & { readonly text: string } {
  return node.kind === SyntaxKind.StringLiteral && /^[A-Za-z]{2,}$/.test((node as unknown as { text: string }).text);
}

function listChanges(node: Node, source: SourceFile, checker: Checker, words: readonly string[]): Change[] {
  const start = node.getStart(source);
  const { end } = node;
  const text = source.text.slice(start, end);
  const replaceBy = (replacements: readonly string[]): Change[] =>
    replacements.map((replacement) => ({ start, end, replacement }));
  if (isWord(node)) return replaceBy(words.filter((word) => word !== node.text).map((word) => `'${word}'`));
  switch (node.kind) {
    case SyntaxKind.NumericLiteral:
      return replaceBy(changeNumber(text));
    case SyntaxKind.Identifier:
    case SyntaxKind.TrueKeyword:
    case SyntaxKind.FalseKeyword: {
      const name = Object.hasOwn(NAMES, text) ? NAMES[text] : undefined;
      return name === undefined ? [] : replaceBy([name]);
    }
    case SyntaxKind.PrefixUnaryExpression:
      return /^(!|-)/.test(text) ? [{ start, end: start + 1, replacement: '' }] : [];
    case SyntaxKind.ConditionalExpression: {
      const parts: { readonly start: number; readonly end: number }[] = [];
      node.forEachChild((child) => {
        parts.push({ start: child.getStart(source), end: child.end });
        return undefined;
      });
      // The condition, `?`, one branch, `:`, the other.
      const [, , yes, colon, no] = parts;
      if (yes === undefined || colon === undefined || no === undefined) return [];
      const between = source.text.slice(yes.end, no.start);
      const swapped = source.text.slice(no.start, no.end) + between + source.text.slice(yes.start, yes.end);
      return [{ start: yes.start, end: no.end, replacement: swapped }];
    }
    case SyntaxKind.QuestionQuestionToken:
      // Before `0`, `''` or `false` both operators give the same.
      if (/^\?\?\s*(0|''|false)(?![\w.])/.test(source.text.slice(start))) return [];
      return isNeverBlank((node.parent as unknown as { left: Node }).left, checker)
        ? []
        : replaceBy(OPERATORS[text] ?? []);
    default:
      return Object.hasOwn(OPERATORS, text) ? replaceBy(OPERATORS[text] ?? []) : [];
  }
}

/** Whether it can never be 0, blank or false: an object, a word, or nothing. */
function isNeverBlank(operand: Node, checker: Checker): boolean {
  const type = checker.getTypeAtLocation(operand);
  const members = type?.isUnionType() ? type.getTypes() : [type];
  return members.every((member) => {
    if (member?.isStringLiteralType()) return member.value !== '';
    return member !== undefined && (member.flags & NEVER_BLANK) !== 0;
  });
}

const NEVER_BLANK = TypeFlags.Object | TypeFlags.Undefined | TypeFlags.Null;

/** A small number by its neighbours; a large one is a budget, and is halved and doubled. */
function changeNumber(text: string): string[] {
  const value = Number(text.replaceAll('_', ''));
  if (value === 0) return ['1'];
  if (value > 10) return [String(Math.floor(value / 2)), String(value * 2)];
  return [String(value - 1), String(value + 1)];
}

function squeeze(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
