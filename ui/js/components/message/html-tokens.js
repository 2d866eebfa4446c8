// Splits HTML into tokens for display. It follows the tokenizer of HTML only as far as colors need, and accepts any text. The time
// is linear in the length of the text.

/** @typedef {'text' | 'tag' | 'name' | 'value' | 'comment'} TokenKind `name` is the name of an attribute. */

/** @typedef {'text' | 'tag' | 'value' | 'double' | 'single' | 'comment' | 'raw'} Mode */

/**
 * The state between two tokens.
 * @typedef {object} State
 * @property {Mode} mode
 * @property {string} raw The name of the element, if its content is not markup: `style` or `script`.
 */

/** The state at the start of a document. @type {State} */
export const START = { mode: 'text', raw: '' };

/** Longer names are split, so that no name is read twice. */
const TAG = /<[/!?]?[a-z!?/][^\s/>]{0,200}/iyu;
const NAME = /[^\s"'>=/]{1,200}/yu;
const UNQUOTED = /[^\s>]{1,200}/yu;
const SPACE = /\s{1,200}/yu;

/** Elements whose content is not markup. */
const RAW = ['style', 'script'];

export class HtmlTokens {
  #html;
  /** The last search for each text: where it started, and what it found. @type {Map<string, { from: number, at: number }>} */
  #found = new Map();

  /** @param {string} html */
  constructor(html) {
    this.#html = html;
  }

  /**
   * Reports the tokens of a range and returns the state at its end.
   * @param {number} start
   * @param {number} end
   * @param {State} state The state at the start.
   * @param {(kind: TokenKind, start: number, end: number) => void} emit
   * @returns {State}
   */
  scan(start, end, state, emit) {
    let [at, now] = [start, state];
    while (at < end) {
      const token = this.#token(at, now);
      const to = Math.min(token.end, end);
      if (to > at) emit(token.kind, at, to);
      // A token that continues after the range stays in its state.
      now = token.end > end ? this.#continued(token, now) : token.state;
      at = to;
    }
    return now;
  }

  /**
   * Returns the token at a position. It is empty if only the state changes.
   * @param {number} at
   * @param {State} state
   * @returns {{ kind: TokenKind, end: number, state: State }}
   */
  #token(at, state) {
    const { mode, raw } = state;
    if (mode === 'tag') return this.#inTag(at, state);
    if (mode === 'value') return this.#value(at, state);
    if (mode === 'double' || mode === 'single') return { kind: 'value', end: this.#after(mode === 'double' ? '"' : "'", at), state: { mode: 'tag', raw } };
    if (mode === 'comment') return { kind: 'comment', end: this.#after('-->', at), state: START };
    if (mode === 'raw') return { kind: 'text', end: this.#closing(raw, at), state: START };
    const open = this.#find('<', at);
    if (open > at) return { kind: 'text', end: open, state };
    if (this.#html.startsWith('<!--', at)) return { kind: 'comment', end: at + 4, state: { mode: 'comment', raw: '' } };
    const tag = match(TAG, this.#html, at);
    if (!tag) return { kind: 'text', end: at + 1, state };
    const name = tag.slice(1).toLowerCase();
    return { kind: 'tag', end: at + tag.length, state: { mode: 'tag', raw: RAW.includes(name) ? name : '' } };
  }

  /**
   * @param {number} at
   * @param {State} state
   * @returns {{ kind: TokenKind, end: number, state: State }}
   */
  #inTag(at, state) {
    const { raw } = state;
    const space = match(SPACE, this.#html, at);
    if (space) return { kind: 'text', end: at + space.length, state };
    switch (this.#html[at]) {
      case '>': return { kind: 'tag', end: at + 1, state: raw ? { mode: 'raw', raw } : START };
      case '=': return { kind: 'text', end: at + 1, state: { mode: 'value', raw } };
      case '"': return { kind: 'value', end: at + 1, state: { mode: 'double', raw } };
      case "'": return { kind: 'value', end: at + 1, state: { mode: 'single', raw } };
      case '/': return { kind: 'tag', end: at + 1, state };
      default: return { kind: 'name', end: at + match(NAME, this.#html, at).length, state };
    }
  }

  /**
   * @param {number} at
   * @param {State} state
   * @returns {{ kind: TokenKind, end: number, state: State }}
   */
  #value(at, state) {
    const { raw } = state;
    const space = match(SPACE, this.#html, at);
    if (space) return { kind: 'text', end: at + space.length, state };
    const char = this.#html[at];
    if (char === '>' || char === '"' || char === "'") return this.#inTag(at, { mode: 'tag', raw });
    return { kind: 'value', end: at + match(UNQUOTED, this.#html, at).length, state: { mode: 'tag', raw } };
  }

  /**
   * @param {{ kind: TokenKind, state: State }} token
   * @param {State} before
   * @returns {State}
   */
  #continued({ kind, state }, before) {
    return kind === 'comment' ? { mode: 'comment', raw: '' } : kind === 'tag' ? state : before;
  }

  /**
   * Returns the position after the next occurrence of a text.
   * @param {string} text
   * @param {number} from
   */
  #after(text, from) {
    return this.#find(text, from) + text.length;
  }

  /**
   * Returns where the closing tag of an element starts.
   * @param {string} name
   * @param {number} from
   */
  #closing(name, from) {
    return this.#find(`</${name}`, from, () => {
      const pattern = new RegExp(`</${name}`, 'giu');
      pattern.lastIndex = from;
      return pattern.exec(this.#html)?.index ?? -1;
    });
  }

  /**
   * Returns the next position of a text, or the length of the document. Positions are kept, so that a document without the text
   * is read once.
   * @param {string} text
   * @param {number} from
   * @param {() => number} [search]
   */
  #find(text, from, search = () => this.#html.indexOf(text, from)) {
    const known = this.#found.get(text);
    if (known && known.from <= from && from <= known.at) return known.at;
    const index = search();
    const at = index < 0 ? this.#html.length : index;
    this.#found.set(text, { from, at });
    return at;
  }
}

/**
 * @param {RegExp} pattern
 * @param {string} text
 * @param {number} at
 */
function match(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? '';
}
