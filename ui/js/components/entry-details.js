// <entry-details>: a part of an entry of a queue that is loaded when it is expanded.

/** @import { QueueEntry } from '../types.js' */

import * as api from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { icon } from '../lib/icons.js';

/**
 * What is loaded, and when.
 * @template {QueueEntry} E
 * @typedef {object} Details
 * @property {(entry: E) => (Node | string)[]} label Returns the content of the line that expands it.
 * @property {(id: string, signal: AbortSignal) => Promise<Node>} load Loads the content.
 * @property {(entry: E) => boolean} isAvailable Returns whether there is anything to load.
 */

/** @template {QueueEntry} E */
export class EntryDetails extends HTMLElement {
  #entry;
  #kind;
  #request = new AbortController();
  #content = h('div', { class: 'transcript' });
  #details;

  /**
   * @param {E} entry
   * @param {Details<E>} kind
   */
  constructor(entry, kind) {
    super();
    this.#entry = entry;
    this.#kind = kind;
    this.#details = h('details', { class: 'outgoing', ontoggle: () => this.#details.open && !this.#content.firstChild && this.#load() }, h('summary', {}, ...kind.label(entry)), this.#content);
    this.hidden = !kind.isAvailable(entry);
  }

  connectedCallback() {
    if (!this.firstChild) fill(this, this.#details);
  }

  disconnectedCallback() {
    this.#request.abort();
  }

  /**
   * Loads the content again after another attempt.
   * @param {E} entry
   */
  update(entry) {
    const isNewer = entry.attempts !== this.#entry.attempts || entry['last-attempt'] !== this.#entry['last-attempt'];
    const summary = this.#details.firstElementChild;
    if (summary && entry.state !== this.#entry.state) fill(summary, ...this.#kind.label(entry));
    this.#entry = entry;
    this.hidden = !this.#kind.isAvailable(entry);
    if (!isNewer) return;
    if (this.#details.open) this.#load();
    else fill(this.#content);
  }

  async #load() {
    this.#request.abort();
    const { signal } = this.#request = new AbortController();
    if (!this.#content.firstChild) fill(this.#content, h('p', { class: 'soft' }, 'Loading…'));
    try {
      const content = await this.#kind.load(this.#entry.id, signal);
      if (!signal.aborted) fill(this.#content, content);
    } catch (error) {
      if (!signal.aborted) fill(this.#content, h('p', { class: 'note bad', role: 'alert' }, icon('warning'), api.sentence(error)));
    }
  }
}

customElements.define('entry-details', EntryDetails);
