// <message-source>: a message byte for byte as far as text can show it, with line numbers. It is fetched when somebody
// looks at it. A large one is laid out by the browser a chunk at a time, and the largest are shown in part.

/** @import { Message } from '../../types.js' */

import * as api from '../../lib/api.js';
import * as paths from '../../lib/paths.js';
import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { size } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { scroller, toggle } from './controls.js';

const MOST_CHARACTERS = 5_000_000;
const MOST_LINES = 100_000;
const CHUNK_LINES = 200;

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
    if (this.firstChild) return;
    const { mailbox, id, subject, size: bytes } = this.#message;
    const bar = h('div', { class: 'panel-bar' },
      toggle('Wrap lines', { pref: 'source.wrap', otherwise: false, apply: (on) => this.#body.classList.toggle('wrapped', on) }),
      h('span', { class: 'soft number panel-fact' }, size(bytes)),
      h('span', { class: 'spread' }),
      this.#copy,
      h('a', { class: 'button small', href: paths.source(mailbox, id), download: fileName(subject, id) }, icon('download'), 'Download .eml'));
    fill(this, bar, this.#body);
    this.#fetch();
  }

  disconnectedCallback() {
    this.#gone.abort();
  }

  async #fetch() {
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
    } finally {
      clearTimeout(slow);
    }
  }

  #draw() {
    const { chunks, shown } = drawn(this.#source);
    const rest = this.#source.length - shown;
    fill(this.#body, chunks, rest > 0 && h('p', { class: 'panel-end' }, `The source is long: another ${size(rest)} are not shown. Copy or download it to see the rest.`));
  }
}

/**
 * The source as chunks of numbered lines, and how many of its characters these are.
 * @param {string} source
 */
function drawn(source) {
  /** @type {HTMLElement[]} */
  const chunks = [];
  /** @type {HTMLElement[]} */
  let lines = [];
  let [at, number, first, inHeader] = [0, 0, 0, true];
  const close = () => {
    if (lines.length > 0) chunks.push(chunk(lines, first));
    [lines, first] = [[], number];
  };
  while (at < source.length && at < MOST_CHARACTERS && number < MOST_LINES) {
    const found = source.indexOf('\n', at);
    const end = found < 0 ? source.length : found;
    const text = source.slice(at, source[end - 1] === '\r' && end > at ? end - 1 : end);
    if (text === '') inHeader = false;
    number += 1;
    for (const piece of line(text.slice(0, MOST_CHARACTERS - at), inHeader)) {
      lines.push(piece);
      if (lines.length === CHUNK_LINES) close();
    }
    at = Math.min(end + 1, source.length);
  }
  close();
  return { chunks, shown: Math.min(at, MOST_CHARACTERS) };
}

/**
 * A line, in pieces when it is too long for one. Its number is drawn by the style sheet, so that it is never copied.
 * @param {string} text
 * @param {boolean} inHeader
 */
function line(text, inHeader) {
  const pieces = [headed(text.slice(0, LONGEST_LINE), inHeader)];
  for (let at = LONGEST_LINE; at < text.length; at += LONGEST_LINE) {
    pieces.push(h('span', { class: 'line-rest' }, text.slice(at, at + LONGEST_LINE), '\n'));
  }
  return pieces;
}

/**
 * @param {string} text
 * @param {boolean} inHeader
 */
function headed(text, inHeader) {
  const colon = inHeader ? /^[!-9;-~]+:/u.exec(text)?.[0].length ?? 0 : 0;
  return h('span', { class: inHeader ? 'line head' : 'line' }, colon > 0 && h('b', {}, text.slice(0, colon)), text.slice(colon), '\n');
}

/**
 * @param {HTMLElement[]} lines
 * @param {number} first How many lines come before it.
 */
function chunk(lines, first) {
  const element = h('pre', { class: 'source-chunk' }, lines);
  // The end of the chunk is the end of its last line.
  lines.at(-1)?.lastChild?.remove();
  // Not on the chunk: what lies beyond its border does not count inside of one that may be left out of the layout.
  lines[0].style.counterReset = `line ${first}`;
  element.style.setProperty('--lines', String(lines.length));
  return element;
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
