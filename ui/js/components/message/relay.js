// <message-relay>: whether a message was sent to other servers, and its entries in the queue of the relay. It updates itself while
// an entry may change. Hidden if there are no entries. Only the newest entries are shown at first, so that the body stays in view.

/** @import { RelayEntryPage } from '../../types.js' */

import * as paths from '../../lib/paths.js';
import * as relay from '../../lib/relay.js';
import { Poll } from '../../lib/poll.js';
import { isPending } from '../../lib/queue.js';
import { fill, h, set } from '../../lib/dom.js';
import { QueueList } from '../queue-list.js';
import { RELAY_ENTRY } from '../relay-entry.js';

/** The number of entries that are shown at first. */
const FIRST_ENTRIES = 3;

export class MessageRelay extends HTMLElement {
  #page;
  #message;
  #list = new QueueList(RELAY_ENTRY);
  #isExpanded = false;
  #toggle = h('button', { class: 'button small', type: 'button', hidden: true, onclick: () => {
    this.#isExpanded = !this.#isExpanded;
    this.#draw();
  } });
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
    this.#all.href = paths.queue('relay', { message });
  }

  connectedCallback() {
    this.#disconnected = new AbortController();
    if (!this.firstChild) fill(this, h('section', { class: 'message-relay', 'aria-label': 'Relay' }, this.#list, this.#toggle, this.#all));
    this.#draw();
    relay.queue.changes.addEventListener('change', () => this.#restart(), { signal: this.#disconnected.signal });
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
    return this.#page.entries.some(isPending);
  }

  #draw() {
    const { entries, next } = this.#page;
    this.hidden = entries.length === 0;
    this.#list.show(this.#isExpanded ? entries : entries.slice(0, FIRST_ENTRIES));
    this.#toggle.hidden = entries.length <= FIRST_ENTRIES;
    this.#toggle.textContent = this.#isExpanded ? 'Show fewer' : `Show ${next === null ? 'all' : 'the newest'} ${entries.length}`;
    set(this.#toggle, { 'aria-expanded': String(this.#isExpanded) });
    this.#all.hidden = next === null;
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
        relay.queue.changes.dispatchEvent(new CustomEvent('entries', { detail: { message: this.#message, entries: page.entries } }));
      }
    } catch {
      // The shown state stays. The next attempt may succeed.
    }
    return this.#isPending();
  }
}

customElements.define('message-relay', MessageRelay);
