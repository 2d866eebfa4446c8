// <message-source>: a message byte for byte as far as text can show it, with line numbers. It is fetched when somebody
// looks at it. A large one is laid out and numbered a chunk at a time, and the largest are shown in part.

/** @import { Message } from '../../types.js' */

import * as api from '../../lib/api.js';
import * as connection from '../../lib/connection.js';
import * as paths from '../../lib/paths.js';
import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { size } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { scroller, toggle } from './controls.js';
import { adornNear } from './steps.js';

const MOST_CHARACTERS = 5_000_000;
const MOST_LINES = 100_000;
const CHUNK_ROWS = 200;

/** A longer line is broken for the eye, as RFC 5322 section 2.1.1 has none; the copy and the file know nothing of that. */
const LONGEST_LINE = 1_000;

/** Of a subject, in the name of a file. */
const LONGEST_NAME = 80;

/** How long nothing is said about a source that is on its way. */
const PATIENCE = 200;

export class MessageSource extends HTMLElement {
  #message;
  #source = '';
  #gone = new AbortController();
  #body = scroller('Source', 'message-source');
  #copy = h('button', { class: 'button small', type: 'button', disabled: true, onclick: () => copy(this.#source, 'Source copied') }, icon('copy'), 'Copy');

  /** @param {Message} message */
  constructor(message) {
    super();
    this.#message = message;
  }

  connectedCallback() {
    if (!this.firstChild) fill(this, this.#bar(), this.#body);
    if (!this.#source) this.#fetch();
  }

  disconnectedCallback() {
    this.#gone.abort();
  }

  #bar() {
    const { mailbox, id, subject, size: bytes } = this.#message;
    return h('div', { class: 'panel-bar' },
      toggle('Wrap lines', { pref: 'source.wrap', otherwise: false, apply: (on) => this.#body.classList.toggle('wrapped', on) }),
      h('span', { class: 'soft number panel-fact' }, size(bytes)),
      h('span', { class: 'spread' }),
      this.#copy,
      h('a', { class: 'button small', href: paths.source(mailbox, id), download: fileName(subject, id) }, icon('download'), 'Download .eml'));
  }

  async #fetch() {
    this.#gone.abort();
    this.#gone = new AbortController();
    const { signal } = this.#gone;
    const slow = setTimeout(() => fill(this.#body, h('p', { class: 'panel-end soft' }, 'Loading…')), PATIENCE);
    try {
      this.#source = await api.source(this.#message.mailbox, this.#message.id, signal);
      this.#copy.disabled = false;
      this.#draw();
    } catch (error) {
      if (signal.aborted) return;
      const retry = h('button', { class: 'button', type: 'button', onclick: () => this.#fetch() }, 'Try again');
      fill(this.#body, h('p', { class: 'panel-end', role: 'alert' }, api.sentence(error), retry));
      connection.changes.addEventListener('change', () => !connection.isLost() && this.#fetch(), { signal });
    } finally {
      clearTimeout(slow);
    }
  }

  #draw() {
    const { rows, shown } = lines(this.#source);
    const chunks = Array.from({ length: Math.ceil(rows.length / CHUNK_ROWS) }, (_, at) => rows.slice(at * CHUNK_ROWS, (at + 1) * CHUNK_ROWS));
    const blocks = chunks.map((chunk) => {
      const block = h('pre', { class: 'source-chunk' }, chunk.map(({ text }) => text).join('\n'));
      block.style.setProperty('--lines', String(chunk.length));
      return block;
    });
    const rest = this.#source.length - shown;
    fill(this.#body, blocks, rest > 0 && h('p', { class: 'panel-end' }, `The source is long: another ${size(rest)} are not shown. Copy or download it to see the rest.`));
    adornNear(this.#body, blocks, (block, at) => fill(block, numbered(chunks[at])));
  }
}

/**
 * What stands in one row: a line, or a piece of one that is too long.
 * @typedef {{ text: string, number: number | null, inHeader: boolean }} Row The number of the line that begins here.
 */

/**
 * The rows of the source, and how many of its characters these are.
 * @param {string} source
 */
function lines(source) {
  /** @type {Row[]} */
  const rows = [];
  let [at, number, inHeader] = [0, 0, true];
  while (at < source.length && at < MOST_CHARACTERS && number < MOST_LINES) {
    const found = source.indexOf('\n', at);
    const end = found < 0 ? source.length : found;
    const stop = Math.min(source[end - 1] === '\r' && end > at ? end - 1 : end, MOST_CHARACTERS);
    if (stop === at) inHeader = false;
    number += 1;
    rows.push({ text: source.slice(at, Math.min(stop, at + LONGEST_LINE)), number, inHeader });
    for (let more = at + LONGEST_LINE; more < stop; more += LONGEST_LINE) {
      rows.push({ text: source.slice(more, Math.min(stop, more + LONGEST_LINE)), number: null, inHeader });
    }
    at = Math.min(end + 1, source.length);
  }
  return { rows, shown: Math.min(at, MOST_CHARACTERS) };
}

/**
 * Rows with their numbers, and with the names of the headers set off. Numbers are drawn by the style sheet, so that they
 * are never copied.
 * @param {Row[]} chunk
 */
function numbered(chunk) {
  return chunk.map(({ text, number, inHeader }, at) => {
    const end = at < chunk.length - 1 ? '\n' : '';
    if (number === null) return text + end;
    const name = inHeader ? /^[!-9;-~]+:/u.exec(text)?.[0] ?? '' : '';
    return h('span', { class: inHeader ? 'line head' : 'line', 'data-line': number }, name && h('b', {}, name), text.slice(name.length) + end);
  });
}

/**
 * A name for the file, without what some system forbids in one.
 * @param {string} subject
 * @param {string} id
 */
function fileName(subject, id) {
  const words = subject.slice(0, LONGEST_NAME).normalize().replace(/[\p{C}\p{Z}\\/:*?"<>|]+/gu, ' ').replace(/^[. ]+|[. ]+$/gu, '');
  return `${words || `message ${id}`}.eml`;
}

customElements.define('message-source', MessageSource);
