// <message-text>: a message's text, made to be read: in lines of a good length, with links, quotations and the
// signature set back.

/** @import { Message } from '../../types.js' */

import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { size } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { scroller, toggle } from './controls.js';
import { linked } from './links.js';
import { adornNear } from './steps.js';

/** More characters than this are shown when they are asked for. */
const LONG = 500_000;

/** The browser lays out a long text piece by piece. */
const PIECE = 20_000;

/** How many links and quotations of a piece are marked; the rest of it is shown as it is. */
const MOST_MARKS = 1_000;

/** RFC 3676 section 4.3. */
const SIGNATURE = '-- ';

export class MessageText extends HTMLElement {
  #text;
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
    const pieces = cut(text);
    const blocks = pieces.map((piece) => h('pre', { class: 'text-piece' }, piece));
    const rest = this.#text.length - text.length;
    const all = h('button', { class: 'button', type: 'button', onclick: () => {
      this.#draw(this.#text);
      this.#body.focus();
    } }, 'Show all');
    const note = h('p', { class: 'panel-end' }, `The text is long: another ${size(rest)} are not shown.`, all);
    fill(this.#body, blocks, rest > 0 && note);
    adornNear(this.#body, blocks, (block, at) => fill(block, marked(pieces[at], at === pieces.length - 1)));
  }
}

/**
 * A piece with its links, and its quotations and the signature apart.
 * @param {string} piece
 * @param {boolean} isLast
 */
function marked(piece, isLast) {
  const signature = isLast ? signatureOf(piece) : piece.length;
  /** @type {(Node | string)[]} */
  const done = [];
  let marks = 0;
  for (const { kind, start, end } of runs(piece, signature)) {
    if (marks >= MOST_MARKS) return [...done, piece.slice(start)];
    const { nodes, links } = linked(piece.slice(start, end), MOST_MARKS - marks);
    marks += links + 1;
    done.push(...(kind === '' ? nodes : [h('span', { class: kind }, nodes)]));
  }
  return done;
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
 * Lines of the same kind, quoted or not, together, and the signature.
 * @param {string} text
 * @param {number} signature Where it begins.
 */
function* runs(text, signature) {
  let start = 0;
  while (start < signature) {
    const quoted = text[start] === '>';
    let end = start;
    do {
      const line = text.indexOf('\n', end);
      end = line < 0 ? signature : line + 1;
    } while (end < signature && (text[end] === '>') === quoted);
    yield { kind: quoted ? 'quoted' : '', start, end };
    start = end;
  }
  if (start < text.length) yield { kind: 'signature', start, end: text.length };
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
