// <message-relay>: whether a message was sent to other servers, and its entries in the queue of the relay. It updates itself while
// an entry may change. Hidden if there are no entries.

/** @import { RelayEntryPage } from '../../types.js' */

import * as paths from '../../lib/paths.js';
import * as relay from '../../lib/relay.js';
import { Poll } from '../../lib/poll.js';
import { fill, h } from '../../lib/dom.js';
import { RelayList } from '../relay-list.js';

export class MessageRelay extends HTMLElement {
  #page;
  #message;
  #list = new RelayList();
  #all = h('a', { hidden: true }, 'Show all in the queue');
  #disconnected = new AbortController();
  #poll = new Poll(() => this.#refresh());

  /**
   * @param {RelayEntryPage} page The entries that are shown at first.
   * @param {string} message The id of the message.
   */
  constructor(page, message) {
    super();
    this.#page = page;
    this.#message = message;
    this.#all.href = paths.relay({ message });
  }

  connectedCallback() {
    this.#disconnected = new AbortController();
    if (!this.firstChild) fill(this, h('section', { class: 'message-relay', 'aria-label': 'Relay' }, this.#list, this.#all));
    this.#draw();
    relay.changes.addEventListener('change', () => this.#restart(), { signal: this.#disconnected.signal });
    if (this.#isPending()) this.#poll.start();
  }

  disconnectedCallback() {
    this.#disconnected.abort();
    this.#poll.stop();
  }

  /**
   * Shows entries that were loaded again.
   * @param {RelayEntryPage} page
   */
  update(page) {
    this.#page = page;
    this.#draw();
    if (this.#isPending()) this.#poll.start();
  }

  #isPending() {
    return this.#page.entries.some(relay.isPending);
  }

  #draw() {
    this.hidden = this.#page.entries.length === 0;
    this.#list.show(this.#page.entries);
    this.#all.hidden = this.#page.next === null;
  }

  /** Loads the entries now, and again while they may change. */
  async #restart() {
    const { signal } = this.#disconnected;
    if (await this.#refresh() && !signal.aborted) this.#poll.start();
  }

  /** Loads the entries. Returns whether they may still change. */
  async #refresh() {
    const { signal } = this.#disconnected;
    try {
      const page = await relay.entriesOf(this.#message, signal);
      if (page && !signal.aborted) {
        this.#page = page;
        this.#draw();
        relay.changes.dispatchEvent(new CustomEvent('entries', { detail: { message: this.#message, entries: page.entries } }));
      }
    } catch {
      // The shown state stays. The next attempt may succeed.
    }
    return this.#isPending();
  }
}

customElements.define('message-relay', MessageRelay);
