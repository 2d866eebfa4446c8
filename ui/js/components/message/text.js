// <message-text>: a message's text, made to be read: in lines of a good length, with links, quotations and the
// signature set back.

/** @import { Message } from '../../types.js' */

import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { size } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { scroller, toggle } from './controls.js';
import { linked } from './links.js';

/** More characters than this are shown when they are asked for. */
const LONG = 500_000;

/** The browser lays out a long text piece by piece. */
const PIECE = 20_000;

/** How many links, quotations and signatures are marked; the rest is shown as it is. */
const MOST_MARKS = 5_000;

/** RFC 3676 section 4.3. */
const SIGNATURE = '-- ';

export class MessageText extends HTMLElement {
  #text;
  #marks = MOST_MARKS;
  #body = scroller('Text', 'message-text');

  /** @param {Message} message */
  constructor(message) {
    super();
    this.#text = message.text.replaceAll('\r\n', '\n');
  }

  connectedCallback() {
    if (this.firstChild) return;
    if (this.#text.trim() === '') {
      fill(this, h('div', { class: 'empty' }, icon('file'), h('h2', {}, 'No text'), h('p', {}, 'The body of this mail is empty. Its parts and its source show what there is.')));
      return;
    }
    const bar = h('div', { class: 'panel-bar' },
      toggle('Wrap lines', { pref: 'text.wrap', otherwise: true, apply: (on) => this.#body.classList.toggle('wrapped', on) }),
      toggle('Monospace', { pref: 'text.mono', otherwise: false, apply: (on) => this.#body.classList.toggle('typed', on) }),
      h('span', { class: 'spread' }),
      h('button', { class: 'button small', type: 'button', onclick: () => copy(this.#text, 'Text copied') }, icon('copy'), 'Copy'));
    this.#draw(this.#text.length > LONG ? this.#text.slice(0, LONG) : this.#text);
    fill(this, bar, this.#body);
  }

  /** @param {string} text */
  #draw(text) {
    this.#marks = MOST_MARKS;
    const pieces = cut(text).map((piece, at, all) => h('pre', { class: 'text-piece' }, this.#marked(piece, at === all.length - 1)));
    const rest = this.#text.length - text.length;
    const all = h('button', { class: 'button', type: 'button', onclick: () => {
      this.#draw(this.#text);
      this.#body.focus();
    } }, 'Show all');
    const note = h('p', { class: 'panel-end' }, `The text is long: another ${size(rest)} are not shown.`, all);
    fill(this.#body, pieces, rest > 0 && note);
  }

  /**
   * A piece with its links, and its quotations and the signature apart.
   * @param {string} piece
   * @param {boolean} isLast
   */
  #marked(piece, isLast) {
    if (this.#marks <= 0) return [piece];
    const signature = isLast ? signatureOf(piece) : piece.length;
    /** @type {(Node | string)[]} */
    const marked = [];
    for (const { kind, text } of [...runs(piece.slice(0, signature)), { kind: 'signature', text: piece.slice(signature) }]) {
      const { nodes, links } = linked(text, this.#marks);
      this.#marks -= links;
      const apart = kind !== '' && text !== '' && this.#marks > 0;
      if (apart) this.#marks -= 1;
      marked.push(...(apart ? [h('span', { class: kind }, nodes)] : nodes));
    }
    return marked;
  }
}

/**
 * Pieces that end at the end of a line, if there is one.
 * @param {string} text
 */
function cut(text) {
  const pieces = [];
  for (let start = 0; start < text.length;) {
    const piece = text.slice(start, start + PIECE);
    const lines = start + PIECE < text.length ? piece.lastIndexOf('\n') + 1 : piece.length;
    pieces.push(piece.slice(0, lines || PIECE));
    start += lines || PIECE;
  }
  return pieces;
}

/**
 * Lines of the same kind, quoted or not, together.
 * @param {string} text
 */
function runs(text) {
  /** @type {{ kind: string, text: string }[]} */
  const found = [];
  let start = 0;
  while (start < text.length) {
    const quoted = text[start] === '>';
    let end = start;
    do {
      const line = text.indexOf('\n', end);
      end = line < 0 ? text.length : line + 1;
    } while (end < text.length && (text[end] === '>') === quoted);
    found.push({ kind: quoted ? 'quoted' : '', text: text.slice(start, end) });
    start = end;
  }
  return found;
}

/**
 * Where the signature begins; at the end when there is none.
 * @param {string} text
 */
function signatureOf(text) {
  if (text.startsWith(`${SIGNATURE}\n`)) return 0;
  const found = text.lastIndexOf(`\n${SIGNATURE}\n`);
  return found < 0 ? text.length : found + 1;
}

customElements.define('message-text', MessageText);
