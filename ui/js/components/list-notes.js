// <list-notes>: the notes above a list of messages: it is loading, it is truncated, or it could not be loaded completely. The
// event `retry` requests another attempt.

/** @import { Messages } from '../lib/messages.js' */

import * as api from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { count } from '../lib/format.js';

/** The delay before "Loading…" is shown, in milliseconds. */
const LOADING_DELAY_MS = 200;

export class ListNotes extends HTMLElement {
  /** @type {number | undefined} */
  #timer;
  #loading = h('p', { class: 'list-none soft', role: 'status', hidden: true }, 'Loading…');
  #truncated = h('p', { class: 'note list-note', hidden: true });
  #incomplete = h('p', { class: 'note warn list-note', role: 'status', hidden: true }, 'The search index is not complete yet, so messages may be missing. The results are updated automatically.');
  #problem = h('p', { class: 'note bad list-note', role: 'alert', hidden: true });
  #problemText = '';

  connectedCallback() {
    fill(this, this.#loading, this.#truncated, this.#incomplete, this.#problem);
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
  }

  /**
   * Call when a list starts to load for the first time.
   * @param {Messages} messages
   */
  begin(messages) {
    clearTimeout(this.#timer);
    this.#loading.hidden = true;
    this.#timer = window.setTimeout(() => (this.#loading.hidden = messages.state !== 'waiting' || messages.error !== null), LOADING_DELAY_MS);
  }

  /** @param {Messages} messages */
  show({ state, error, isTruncated, isIndexIncomplete, entries }) {
    this.#loading.hidden ||= state !== 'waiting' || error !== null;
    this.#truncated.hidden = !isTruncated;
    this.#truncated.textContent = isTruncated ? `This list shows only the newest ${count(entries.length)} messages.` : '';
    this.#incomplete.hidden = !isIndexIncomplete;
    // If there are no messages, <empty-list> shows the error.
    const text = error && entries.length > 0 ? `The list may be out of date. ${api.sentence(error)}` : '';
    if (this.#problemText === text) return;
    this.#problemText = text;
    this.#problem.hidden = text === '';
    fill(this.#problem, text, h('button', { class: 'button small', type: 'button', onclick: () => this.dispatchEvent(new Event('retry', { bubbles: true })) }, 'Try again'));
  }
}

customElements.define('list-notes', ListNotes);
