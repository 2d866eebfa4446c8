// The page `/relay`: the targets of the relay, and the entries of its queue. It updates itself while an entry may change.

/** @import { RelayEntryPage, RelayState, Route } from '../types.js' */

import * as api from '../lib/api.js';
import * as paths from '../lib/paths.js';
import * as relay from '../lib/relay.js';
import { fill, h, set } from '../lib/dom.js';
import { confirm, toast } from '../lib/feedback.js';
import { plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { Poll } from '../lib/poll.js';
import { go } from '../lib/router.js';
import { title } from '../lib/title.js';
import { RelayList } from '../components/relay-list.js';
import { relayTargets } from '../components/relay-targets.js';

const PAGE_SIZE = 50;
/** The maximum number of entries in one response. */
const MAX_ENTRIES = 1_000;

/** @type {RelayEntryPage} */
const NO_ENTRIES = { entries: [], next: null };

export class RelayPage extends HTMLElement {
  /** @type {Route} */
  #route = { page: 'missing' };
  #request = new AbortController();
  #disconnected = new AbortController();
  #poll = new Poll(() => this.#load());
  /** The cursor of the next page, or null. @type {string | null} */
  #next = null;
  /** The number of entries that are loaded again. */
  #limit = PAGE_SIZE;

  #filter = h('select', { class: 'field', 'aria-label': 'State', onchange: () => this.#choose() }, h('option', { value: '' }, 'All states'), paths.RELAY_STATES.map((state) => h('option', { value: state }, state)));
  #everything = h('a', { href: paths.relay(), hidden: true }, 'All messages');
  #retry = h('button', { class: 'button', type: 'button', onclick: () => isEnabled(this.#retry) && this.#retryAll() }, 'Retry all');
  #cancel = h('button', { class: 'button danger', type: 'button', onclick: () => isEnabled(this.#cancel) && this.#cancelAll() }, 'Cancel all');
  #actions = h('div', { class: 'row', hidden: true }, this.#retry, this.#cancel);
  #targets = h('div', { class: 'relay-overview' });
  #state = h('div', { class: 'sessions-state', 'aria-live': 'polite' });
  #list = new RelayList({ isListed: true });
  #more = h('button', { class: 'button', type: 'button', hidden: true, onclick: () => this.#loadOlder() }, 'Show more');

  get route() {
    return this.#route;
  }

  set route(route) {
    this.#route = route;
    if (this.isConnected) this.#follow();
  }

  connectedCallback() {
    title('Relay');
    this.#disconnected = new AbortController();
    const refresh = h('button', { class: 'button', type: 'button', onclick: () => this.#restart() }, icon('refresh'), 'Refresh');
    fill(this, h('div', { class: 'page relay-page' },
      h('div', { class: 'sessions-head' }, h('h1', { tabindex: -1 }, 'Relay'), h('span', { class: 'spread' }), this.#everything, this.#filter, refresh),
      h('p', { class: 'soft' }, 'Messages that are sent to other mail servers: released by hand, or forwarded by a rule.'),
      this.#targets, this.#actions, this.#state, this.#list, h('div', { class: 'search-more' }, this.#more)));
    relay.changes.addEventListener('change', () => this.#restart(), { signal: this.#disconnected.signal });
    this.#follow();
  }

  disconnectedCallback() {
    this.#disconnected.abort();
    this.#request.abort();
    this.#poll.stop();
  }

  /** Returns the filter of the address. */
  #wanted() {
    const { state, message } = this.#route.page === 'relay' ? this.#route : { state: null, message: null };
    return { state, message };
  }

  #choose() {
    const state = /** @type {RelayState | ''} */ (this.#filter.value) || null;
    go(paths.relay({ ...this.#wanted(), state }), { replace: true });
  }

  /** Loads the entries of the address. */
  #follow() {
    const { state, message } = this.#wanted();
    this.#filter.value = state ?? '';
    this.#everything.hidden = message === null;
    this.#limit = PAGE_SIZE;
    this.#restart();
  }

  /** Loads the newest entries now, and again while they may change. */
  async #restart() {
    this.#poll.stop();
    if (await this.#load() && this.isConnected) this.#poll.start();
  }

  /** Loads the targets and the newest entries. Returns whether they may change; true if another request has replaced this one. */
  async #load() {
    this.#request.abort();
    const { signal } = this.#request = new AbortController();
    const server = await api.about().catch(() => null);
    if (signal.aborted) return true;
    if (server?.['monitor-visible'] === false && this.#wanted().message === null) {
      fill(this.#state, queueHidden());
      return false;
    }
    try {
      const targets = await relay.overview(signal);
      const isConfigured = targets.length > 0;
      const { entries, next } = isConfigured ? await relay.entries({ ...this.#wanted(), limit: this.#limit, signal }) : NO_ENTRIES;
      fill(this.#targets, isConfigured && relayTargets(targets));
      this.#actions.hidden = !isConfigured;
      // The counts do not include entries of targets that were removed from the settings.
      enable(this.#retry, relay.isAnyRetryable(targets) || entries.some(relay.isRetryable));
      enable(this.#cancel, relay.isAnyPending(targets) || entries.some(relay.isPending));
      this.#list.show(entries);
      this.#setNext(next);
      fill(this.#state, !isConfigured ? notConfigured() : entries.length === 0 && nothing(this.#wanted().state));
      return entries.some(relay.isPending);
    } catch (error) {
      if (signal.aborted) return true;
      this.#showError(error);
      return this.#list.size > 0;
    }
  }

  async #loadOlder() {
    this.#request.abort();
    const { signal } = this.#request = new AbortController();
    try {
      const { entries, next } = await relay.entries({ ...this.#wanted(), limit: PAGE_SIZE, before: this.#next, signal });
      const first = this.#list.addOlder(entries);
      this.#limit = Math.min(this.#list.size, MAX_ENTRIES);
      if (document.activeElement === this.#more) first?.focus();
      this.#setNext(next);
    } catch (error) {
      if (!signal.aborted) this.#showError(error);
    }
  }

  /** @param {string | null} next */
  #setNext(next) {
    this.#next = next;
    this.#more.hidden = next === null;
  }

  /** @param {unknown} error */
  #showError(error) {
    fill(this.#state, h('p', { class: 'note bad', role: 'alert' }, icon('warning'), api.sentence(error)));
  }

  async #retryAll() {
    const isConfirmed = await confirm({ title: 'Retry all?', text: 'All messages that are queued, failed or cancelled are sent now, to the recipients that have not accepted them yet.', action: 'Retry all', dismiss: 'Keep' });
    if (isConfirmed) await this.#change(async () => `${plural(await relay.retry({ all: true }), 'message is', 'messages are')} sent again.`);
  }

  async #cancelAll() {
    const isConfirmed = await confirm({ title: 'Cancel all?', text: 'No message that is queued is sent any more. You can retry them later.', action: 'Cancel all', dismiss: 'Keep', danger: true });
    if (isConfirmed) await this.#change(async () => `${plural(await relay.cancel({ all: true }), 'message was', 'messages were')} cancelled.`);
  }

  /** @param {() => Promise<string>} change Returns a sentence about what it has done. */
  async #change(change) {
    try {
      toast(await change());
    } catch (error) {
      toast(api.sentence(error), { bad: true });
    }
  }
}

/**
 * Not `disabled`, so that the button keeps the focus.
 * @param {HTMLButtonElement} button
 * @param {boolean} isOn
 */
const enable = (button, isOn) => set(button, { 'aria-disabled': !isOn && 'true' });

/** @param {HTMLButtonElement} button */
const isEnabled = (button) => !button.hasAttribute('aria-disabled');

function queueHidden() {
  return h('p', { class: 'note' }, icon('shield'), 'This server does not show the messages of all mailboxes. Open a message to see where it was sent.');
}

function notConfigured() {
  return h('div', { class: 'empty' }, icon('send'), h('h2', {}, 'The relay is not configured'),
    h('p', {}, 'Nothing leaves this server. To release messages to real mailboxes, configure a target with the setting ', h('code', {}, 'relay.targets'), '.'));
}

/** @param {RelayState | null} state */
function nothing(state) {
  return h('div', { class: 'empty' }, icon('send'), h('h2', {}, state === null ? 'Nothing was sent yet' : `Nothing is ${state}`),
    h('p', {}, 'Open a message and press Release… to send it to a real mailbox.'));
}

customElements.define('relay-page', RelayPage);
