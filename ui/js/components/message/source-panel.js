// A panel with a long text with line numbers. The text is loaded when the panel is first shown. Line numbers and colors are added
// chunk by chunk, and very long texts are truncated.

/** @import { Child } from '../../lib/dom.js' */

import * as api from '../../lib/api.js';
import * as connection from '../../lib/connection.js';
import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { size } from '../../lib/format.js';
import { iconButton, scroller, toggle } from './controls.js';
import { decorateWhenNear } from './show-more.js';

const MAX_CHARACTERS = 5_000_000;
const MAX_LINES = 100_000;
const CHUNK_ROWS = 200;

/** Longer lines are wrapped in the display only. RFC 5322 section 2.1.1 limits lines to 998 characters. */
const MAX_LINE_LENGTH = 1_000;

/** The delay before "Loading…" is shown, in milliseconds. */
const LOADING_DELAY_MS = 200;

/**
 * A row of the display: a line, or a part of a long line.
 * @typedef {{ start: number, end: number, number: number | null }} Row `number` is null for the continuation of a line.
 */

/**
 * Returns the content of each row of a chunk, with colors.
 * @typedef {(chunk: number) => { nodes: Child[], kind?: string }[]} Highlighter
 */

/**
 * @typedef {object} SourceOptions
 * @property {string} label
 * @property {string} pref The name of the preference whether lines are wrapped.
 * @property {boolean} wrapped Its default.
 * @property {HTMLElement} download
 * @property {(signal: AbortSignal) => Promise<string>} load
 * @property {(text: string, chunks: Row[][]) => Highlighter} highlighter
 */

export class SourcePanel extends HTMLElement {
  #options;
  #text = '';
  #request = new AbortController();
  #body;
  #copy;
  /** The controls of this panel. @type {HTMLElement[]} */
  controls;

  /** @param {SourceOptions} options */
  constructor(options) {
    super();
    this.#options = options;
    this.#body = scroller(options.label, 'message-source');
    this.#copy = iconButton('copy', 'Copy', () => copy(this.#text, `${options.label} copied`));
    this.#copy.disabled = true;
    const { pref, wrapped, download } = options;
    this.controls = [toggle('wrap', 'Wrap lines', { pref, fallback: wrapped, apply: (on) => this.#body.classList.toggle('wrapped', on) }), this.#copy, download];
  }

  connectedCallback() {
    if (!this.firstChild) fill(this, this.#body);
    if (!this.#text) this.#fetch();
  }

  disconnectedCallback() {
    this.#request.abort();
  }

  async #fetch() {
    this.#request.abort();
    this.#request = new AbortController();
    const { signal } = this.#request;
    const slow = setTimeout(() => fill(this.#body, h('p', { class: 'panel-end soft' }, 'Loading…')), LOADING_DELAY_MS);
    try {
      this.#text = await this.#options.load(signal);
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
    const text = this.#text;
    const { rows, shown } = lines(text);
    const chunks = Array.from({ length: Math.ceil(rows.length / CHUNK_ROWS) }, (_, at) => rows.slice(at * CHUNK_ROWS, (at + 1) * CHUNK_ROWS));
    const blocks = chunks.map((chunk) => {
      const block = h('pre', { class: 'source-chunk' }, chunk.map(({ start, end }) => text.slice(start, end)).join('\n'));
      block.style.setProperty('--lines', String(chunk.length));
      return block;
    });
    const rest = text.length - shown;
    fill(this.#body, blocks, rest > 0 && h('p', { class: 'panel-end' }, `The text is too long to show here: ${size(rest)} are hidden. Copy or download it to see all of it.`));
    const highlight = this.#options.highlighter(text, chunks);
    decorateWhenNear(this, blocks, (block, at) => fill(block, ...numbered(chunks[at], highlight(at))));
  }
}

/**
 * Splits a text into rows. Returns them and the number of characters in them.
 * @param {string} text
 */
function lines(text) {
  /** @type {Row[]} */
  const rows = [];
  let [at, number] = [0, 0];
  while (at < text.length && at < MAX_CHARACTERS && number < MAX_LINES) {
    const found = text.indexOf('\n', at);
    const end = found < 0 ? text.length : found;
    const stop = Math.min(text[end - 1] === '\r' && end > at ? end - 1 : end, MAX_CHARACTERS);
    number += 1;
    rows.push({ start: at, end: Math.min(stop, at + MAX_LINE_LENGTH), number });
    for (let more = at + MAX_LINE_LENGTH; more < stop; more += MAX_LINE_LENGTH) {
      rows.push({ start: more, end: Math.min(stop, more + MAX_LINE_LENGTH), number: null });
    }
    at = Math.min(end + 1, text.length);
  }
  return { rows, shown: Math.min(at, MAX_CHARACTERS) };
}

/**
 * Formats rows with line numbers. The style sheet draws the numbers, so they are never copied.
 * @param {Row[]} chunk
 * @param {{ nodes: Child[], kind?: string }[]} content
 */
function numbered(chunk, content) {
  return chunk.flatMap(({ number }, at) => {
    const { nodes, kind } = content[at];
    const end = at < chunk.length - 1 ? '\n' : '';
    return number === null ? [...nodes, end] : [h('span', { class: kind ? `line ${kind}` : 'line', 'data-line': number }, ...nodes, end)];
  });
}
