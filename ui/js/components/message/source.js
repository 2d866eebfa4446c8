// <message-source>: the source of a message as text, with line numbers. It is loaded when it is first shown. Line numbers are
// added chunk by chunk, and very large sources are truncated.

/** @import { Message } from '../../types.js' */

import * as api from '../../lib/api.js';
import * as connection from '../../lib/connection.js';
import * as paths from '../../lib/paths.js';
import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { size } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { scroller, toggle } from './controls.js';
import { decorateWhenNear } from './show-more.js';

const MAX_CHARACTERS = 5_000_000;
const MAX_LINES = 100_000;
const CHUNK_ROWS = 200;

/** Longer lines are wrapped in the display only. RFC 5322 section 2.1.1 limits lines to 998 characters. */
const MAX_LINE_LENGTH = 1_000;

/** The maximum length of the subject in the file name. */
const MAX_NAME_LENGTH = 80;

/** The delay before "Loading…" is shown, in milliseconds. */
const LOADING_DELAY_MS = 200;

export class MessageSource extends HTMLElement {
  #message;
  #source = '';
  #request = new AbortController();
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
    this.#request.abort();
  }

  #bar() {
    const { mailbox, id, subject, size: bytes } = this.#message;
    return h('div', { class: 'panel-bar' },
      toggle('Wrap lines', { pref: 'source.wrap', fallback: false, apply: (on) => this.#body.classList.toggle('wrapped', on) }),
      h('span', { class: 'soft number panel-fact' }, size(bytes)),
      h('span', { class: 'spread' }),
      this.#copy,
      h('a', { class: 'button small', href: paths.source(mailbox, id), download: fileName(subject, id) }, icon('download'), 'Download .eml'));
  }

  async #fetch() {
    this.#request.abort();
    this.#request = new AbortController();
    const { signal } = this.#request;
    const slow = setTimeout(() => fill(this.#body, h('p', { class: 'panel-end soft' }, 'Loading…')), LOADING_DELAY_MS);
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
    fill(this.#body, blocks, rest > 0 && h('p', { class: 'panel-end' }, `The source is too long to show here: ${size(rest)} are hidden. Copy or download the source to see all of it.`));
    decorateWhenNear(this.#body, blocks, (block, at) => fill(block, numbered(chunks[at])));
  }
}

/**
 * A row of the display: a line, or a part of a long line.
 * @typedef {{ text: string, number: number | null, inHeader: boolean }} Row `number` is null for the continuation of a line.
 */

/**
 * Splits the source into rows. Returns them and the number of characters in them.
 * @param {string} source
 */
function lines(source) {
  /** @type {Row[]} */
  const rows = [];
  let [at, number, inHeader] = [0, 0, true];
  while (at < source.length && at < MAX_CHARACTERS && number < MAX_LINES) {
    const found = source.indexOf('\n', at);
    const end = found < 0 ? source.length : found;
    const stop = Math.min(source[end - 1] === '\r' && end > at ? end - 1 : end, MAX_CHARACTERS);
    if (stop === at) inHeader = false;
    number += 1;
    rows.push({ text: source.slice(at, Math.min(stop, at + MAX_LINE_LENGTH)), number, inHeader });
    for (let more = at + MAX_LINE_LENGTH; more < stop; more += MAX_LINE_LENGTH) {
      rows.push({ text: source.slice(more, Math.min(stop, more + MAX_LINE_LENGTH)), number: null, inHeader });
    }
    at = Math.min(end + 1, source.length);
  }
  return { rows, shown: Math.min(at, MAX_CHARACTERS) };
}

/**
 * Formats rows with line numbers and highlighted header names. The style sheet draws the numbers, so they are never copied.
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
 * Returns a file name without characters that an operating system forbids.
 * @param {string} subject
 * @param {string} id
 */
function fileName(subject, id) {
  const words = subject.slice(0, MAX_NAME_LENGTH).normalize().replace(/[\p{C}\p{Z}\\/:*?"<>|]+/gu, ' ').replace(/^[. ]+|[. ]+$/gu, '');
  return `${words || `message ${id}`}.eml`;
}

customElements.define('message-source', MessageSource);
