// <message-text>: the text of a message with links, quotations and signature highlighted.

/** @import { Message } from '../../types.js' */

import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { size } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { iconButton, scroller, toggle } from './controls.js';
import { linkify } from './linkify.js';
import { decorateWhenNear } from './show-more.js';

/** Longer texts are truncated until the user shows all, in characters. */
const FIRST_CHARACTERS = 500_000;

/** The length of a chunk: the browser lays out each chunk separately. */
const CHUNK_LENGTH = 20_000;

/** The maximum number of highlighted links and quotations in a chunk. */
const MAX_MARKS = 1_000;

/** RFC 3676 section 4.3. */
const SIGNATURE = '-- ';

export class MessageText extends HTMLElement {
  #text;
  #body = scroller('Text', 'message-text');
  /** The controls of this panel. @type {HTMLElement[]} */
  controls = [];

  /** @param {Message} message */
  constructor(message) {
    super();
    this.#text = message.text.replaceAll('\r\n', '\n');
    if (this.#text.trim() !== '') this.controls = [
      toggle('wrap', 'Wrap lines', { pref: 'text.wrap', fallback: true, apply: (on) => this.#body.classList.toggle('wrapped', on) }),
      toggle('text', 'Monospace', { pref: 'text.mono', fallback: false, apply: (on) => this.#body.classList.toggle('monospace', on) }),
      iconButton('copy', 'Copy the text', () => copy(this.#text, 'Text copied')),
    ];
  }

  connectedCallback() {
    if (this.firstChild) return;
    if (this.#text.trim() === '') {
      fill(this, h('div', { class: 'empty' }, icon('file'), h('h2', {}, 'No text'), h('p', {}, 'The body of this message is empty. See the tabs Parts and Source for its content.')));
      return;
    }
    fill(this, this.#body);
    this.#draw(this.#text.length > FIRST_CHARACTERS ? this.#text.slice(0, FIRST_CHARACTERS) : this.#text);
  }

  /** @param {string} text */
  #draw(text) {
    const chunks = split(text);
    const blocks = chunks.map((chunk) => h('pre', { class: 'text-chunk' }, chunk));
    const rest = this.#text.length - text.length;
    const all = h('button', { class: 'button', type: 'button', onclick: () => {
      this.#draw(this.#text);
      this.#body.focus();
    } }, 'Show all');
    const note = h('p', { class: 'panel-end' }, `The text is long: ${size(rest)} are hidden.`, all);
    fill(this.#body, blocks, rest > 0 && note);
    decorateWhenNear(this, blocks, (block, at) => fill(block, highlight(chunks[at], at === chunks.length - 1)));
  }
}

/**
 * Returns the nodes of a chunk with links, quotations and the signature.
 * @param {string} chunk
 * @param {boolean} isLast
 */
function highlight(chunk, isLast) {
  const signature = isLast ? signatureStart(chunk) : chunk.length;
  /** @type {(Node | string)[]} */
  const done = [];
  let marks = 0;
  for (const { kind, start, end } of runs(chunk, signature)) {
    if (marks >= MAX_MARKS) return [...done, chunk.slice(start)];
    const { nodes, links } = linkify(chunk.slice(start, end), MAX_MARKS - marks);
    marks += links + 1;
    done.push(...(kind === '' ? nodes : [h('span', { class: kind }, nodes)]));
  }
  return done;
}

/**
 * Splits a text into chunks, at line ends if possible.
 * @param {string} text
 */
function split(text) {
  const chunks = [];
  for (let start = 0; start < text.length;) {
    const chunk = text.slice(start, start + CHUNK_LENGTH);
    const lines = start + CHUNK_LENGTH < text.length ? chunk.lastIndexOf('\n') + 1 : chunk.length;
    chunks.push(chunk.slice(0, lines || CHUNK_LENGTH));
    start += lines || CHUNK_LENGTH;
  }
  return chunks;
}

/**
 * Yields runs of quoted lines, of other lines, and the signature.
 * @param {string} text
 * @param {number} signature The index where the signature starts.
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
 * Returns the index where the signature starts, or the length of the text.
 * @param {string} text
 */
function signatureStart(text) {
  if (text.startsWith(`${SIGNATURE}\n`)) return 0;
  const found = text.lastIndexOf(`\n${SIGNATURE}\n`);
  return found < 0 ? text.length : found + 1;
}

customElements.define('message-text', MessageText);
