// <outgoing-transcript>: the transcript of the last attempt to send an entry of the relay. It is loaded when it is expanded.

/** @import { RelayEntry } from '../types.js' */

import * as api from '../lib/api.js';
import * as relay from '../lib/relay.js';
import { fill, h } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { transcriptLines } from './transcript.js';

export class OutgoingTranscript extends HTMLElement {
  #entry;
  #request = new AbortController();
  #label;
  #content = h('div', { class: 'transcript' });
  #details;

  /**
   * @param {RelayEntry} entry
   * @param {(entry: RelayEntry) => (Node | string)[]} [label] Returns the content of the line that expands it.
   */
  constructor(entry, label = () => ['Transcript of the last attempt']) {
    super();
    this.#entry = entry;
    this.#label = label;
    this.#details = h('details', { class: 'outgoing', ontoggle: () => this.#details.open && !this.#content.firstChild && this.#load() }, h('summary', {}, ...label(entry)), this.#content);
    this.hidden = entry.attempts === 0;
  }

  connectedCallback() {
    if (!this.firstChild) fill(this, this.#details);
  }

  disconnectedCallback() {
    this.#request.abort();
  }

  /**
   * Shows the transcript of a newer attempt, if there is one.
   * @param {RelayEntry} entry
   */
  update(entry) {
    const isNewer = entry.attempts !== this.#entry.attempts || entry['last-attempt'] !== this.#entry['last-attempt'];
    const summary = this.#details.firstElementChild;
    if (summary && entry.state !== this.#entry.state) fill(summary, ...this.#label(entry));
    this.#entry = entry;
    this.hidden = entry.attempts === 0;
    if (!isNewer) return;
    if (this.#details.open) this.#load();
    else fill(this.#content);
  }

  async #load() {
    this.#request.abort();
    const { signal } = this.#request = new AbortController();
    if (!this.#content.firstChild) fill(this.#content, h('p', { class: 'soft' }, 'Loading…'));
    try {
      const lines = await relay.transcript(this.#entry.id, signal);
      if (!signal.aborted) fill(this.#content, lines.length > 0 ? transcriptLines(lines) : h('p', { class: 'soft' }, 'There was no connection.'));
    } catch (error) {
      if (!signal.aborted) fill(this.#content, h('p', { class: 'note bad', role: 'alert' }, icon('warning'), api.sentence(error)));
    }
  }
}

customElements.define('outgoing-transcript', OutgoingTranscript);
