// <list-notes>: what there is to say above a list of messages: that it is on its way, that it is not all, or why the rest
// does not come. The event `again` asks for another attempt.

/** @import { Messages } from '../lib/messages.js' */

import * as api from '../lib/api.js';
import { fill, h } from '../lib/dom.js';
import { count } from '../lib/format.js';

/** Before this, waiting is not worth a word. */
const SOON = 200;

export class ListNotes extends HTMLElement {
  /** @type {number | undefined} */
  #waiting;
  #wait = h('p', { class: 'list-none soft', role: 'status', hidden: true }, 'Loading…');
  #cut = h('p', { class: 'note list-note', hidden: true });
  #problem = h('p', { class: 'note bad list-note', role: 'alert', hidden: true });
  #said = '';

  connectedCallback() {
    fill(this, this.#wait, this.#cut, this.#problem);
  }

  disconnectedCallback() {
    clearTimeout(this.#waiting);
  }

  /**
   * A list is asked for that nobody has seen yet.
   * @param {Messages} messages
   */
  begin(messages) {
    clearTimeout(this.#waiting);
    this.#wait.hidden = true;
    this.#waiting = window.setTimeout(() => (this.#wait.hidden = messages.state !== 'waiting' || messages.error !== null), SOON);
  }

  /** @param {Messages} messages */
  show({ state, error, isCut, entries }) {
    this.#wait.hidden ||= state !== 'waiting' || error !== null;
    this.#cut.hidden = !isCut;
    this.#cut.textContent = isCut ? `Only the newest ${count(entries.length)} messages are shown here.` : '';
    // Where there is no list at all, a whole page says so.
    const said = error && entries.length > 0 ? `${state === 'complete' ? 'The list may be out of date.' : 'The rest of the list could not be loaded.'} ${api.sentence(error)}` : '';
    if (this.#said === said) return;
    this.#said = said;
    this.#problem.hidden = said === '';
    fill(this.#problem, said, h('button', { class: 'button small', type: 'button', onclick: () => this.dispatchEvent(new Event('again', { bubbles: true })) }, 'Try again'));
  }
}

customElements.define('list-notes', ListNotes);
