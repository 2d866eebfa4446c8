// The base of the pages `/relay` and `/webhooks`: the targets of a queue, and its entries. It updates itself.

/** @import { EntryState, QueueEntry, QueueTarget, Route } from '../types.js' */
/** @import { EntryKind } from './queue-entry.js' */
/** @import { TargetText } from './queue-targets.js' */

import * as api from '../lib/api.js';
import * as connection from '../lib/connection.js';
import * as paths from '../lib/paths.js';
import { fill, h, set } from '../lib/dom.js';
import { confirm, toast } from '../lib/feedback.js';
import { plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { Poll } from '../lib/poll.js';
import { isAnyPending, isAnyRetryable, isPending, isRetryable } from '../lib/queue.js';
import { go } from '../lib/router.js';
import { title } from '../lib/title.js';
import { QueueList } from './queue-list.js';
import { queueTargets } from './queue-targets.js';
import { liveState, pageHead } from './page-head.js';

const PAGE_SIZE = 50;
/** The maximum number of entries in one response. */
const MAX_ENTRIES = 1_000;

/**
 * What differs between the pages.
 * @template {QueueTarget} T
 * @template {QueueEntry} E
 * @typedef {object} PageKind
 * @property {'relay' | 'webhooks'} page The name of the page, and the segment of its path.
 * @property {string} title
 * @property {string} about
 * @property {EntryKind<E>} entry
 * @property {(target: T) => TargetText} target
 * @property {[string, string]} noun What is sent, for one and for several entries.
 * @property {string} retryText What happens if all entries are retried.
 * @property {string} hiddenText What is shown if the monitor is disabled.
 * @property {[string, Node]} notConfigured The title and the text if there are no targets.
 * @property {string} nothingText What is shown below the title if there are no entries.
 */

/**
 * @template {QueueTarget} T
 * @template {QueueEntry} E
 */
export class QueuePage extends HTMLElement {
  #kind;
  #queue;
  /** @type {Route} */
  #route = { page: 'missing' };
  #request = new AbortController();
  /** The request of older entries; null if none is running. @type {AbortController | null} */
  #olderRequest = null;
  #disconnected = new AbortController();
  #poll = new Poll(() => this.#load(), { repetitions: Infinity });
  #tracker = connection.track();
  /** The cursor of the next page, or null. @type {string | null} */
  #next = null;
  /** The number of entries that are loaded again. */
  #limit = PAGE_SIZE;

  #live = liveState();
  #filter = h('select', { class: 'field', 'aria-label': 'State', onchange: () => this.#choose() }, h('option', { value: '' }, 'All states'), paths.ENTRY_STATES.map((state) => h('option', { value: state }, state)));
  #everything = h('a', { class: 'button', hidden: true }, 'All entries');
  #retry = h('button', { class: 'button', type: 'button', onclick: () => isEnabled(this.#retry) && this.#retryAll() }, 'Retry all');
  #cancel = h('button', { class: 'button', type: 'button', onclick: () => isEnabled(this.#cancel) && this.#cancelAll() }, 'Cancel all');
  #actions = h('div', { class: 'row queue-tools', hidden: true }, this.#filter, h('span', { class: 'spread' }), this.#retry, this.#cancel);
  #targets = h('div', { class: 'queue-overview' });
  #state = h('div', { class: 'page-state', 'aria-live': 'polite' });
  #list;
  #more = h('button', { class: 'button', type: 'button', hidden: true, onclick: () => this.#loadOlder() }, 'Show more');

  /** @param {PageKind<T, E>} kind */
  constructor(kind) {
    super();
    this.#kind = kind;
    this.#queue = kind.entry.queue;
    this.#list = new QueueList(kind.entry, { isListed: true });
    this.#everything.href = paths.queue(kind.page);
  }

  get route() {
    return this.#route;
  }

  set route(route) {
    this.#route = route;
    if (this.isConnected) this.#follow();
  }

  connectedCallback() {
    title(this.#kind.title);
    this.#disconnected = new AbortController();
    fill(this, h('div', { class: 'page queue-page' },
      pageHead(this.#kind.title, this.#live.element, h('span', { class: 'spread' }), this.#everything),
      h('p', { class: 'soft' }, this.#kind.about),
      this.#targets, this.#actions, this.#state, this.#list, h('div', { class: 'page-more' }, this.#more)));
    this.#queue.changes.addEventListener('change', () => this.#poll.startNow(), { signal: this.#disconnected.signal });
    this.#follow();
  }

  disconnectedCallback() {
    this.#disconnected.abort();
    this.#request.abort();
    this.#olderRequest?.abort();
    this.#poll.stop();
    this.#tracker.up();
  }

  /** Returns the filter of the address. */
  #wanted() {
    const { state, message } = this.#route.page === 'relay' || this.#route.page === 'webhooks' ? this.#route : { state: null, message: null };
    return { state, message };
  }

  #choose() {
    const state = /** @type {EntryState | ''} */ (this.#filter.value) || null;
    go(paths.queue(this.#kind.page, { ...this.#wanted(), state }), { replace: true });
  }

  /** Loads the entries of the address. */
  #follow() {
    const { state, message } = this.#wanted();
    this.#filter.value = state ?? '';
    this.#everything.hidden = message === null;
    this.#olderRequest?.abort();
    this.#olderRequest = null;
    this.#limit = PAGE_SIZE;
    this.#setNext(null);
    this.#poll.startNow();
  }

  /** Loads the targets and the newest entries. Returns whether to load them again. */
  async #load() {
    // The cursor of the older entries must not change.
    if (this.#olderRequest) return true;
    this.#request.abort();
    const { signal } = this.#request = new AbortController();
    const server = await api.about().catch(() => null);
    if (signal.aborted) return true;
    if (server?.['monitor-visible'] === false && this.#wanted().message === null) {
      fill(this.#state, h('p', { class: 'note' }, icon('shield'), this.#kind.hiddenText));
      return false;
    }
    try {
      const targets = await this.#queue.targets(signal);
      const isConfigured = targets.length > 0;
      const { entries, next } = isConfigured ? await this.#queue.entries({ ...this.#wanted(), limit: this.#limit, signal }) : { entries: [], next: null };
      this.#drawTargets(targets);
      this.#actions.hidden = !isConfigured;
      // The counts do not include entries of targets that were removed from the settings.
      enable(this.#retry, isAnyRetryable(targets) || entries.some(isRetryable));
      enable(this.#cancel, isAnyPending(targets) || entries.some(isPending));
      const hasOlder = this.#list.show(entries, { keepsOlder: next !== null && this.#limit === MAX_ENTRIES });
      if (!hasOlder) this.#setNext(next);
      this.#showState(null, isConfigured ? entries.length === 0 && this.#nothing() : empty(...this.#kind.notConfigured));
      this.#live.element.hidden = !isConfigured;
      return isConfigured;
    } catch (error) {
      if (!signal.aborted) this.#showState(error);
      return true;
    }
  }

  async #loadOlder() {
    if (this.#olderRequest) return;
    this.#request.abort();
    const request = this.#olderRequest = new AbortController();
    const { signal } = request;
    try {
      const { entries, next } = await this.#queue.entries({ ...this.#wanted(), limit: PAGE_SIZE, before: this.#next, signal });
      if (signal.aborted) return;
      const first = this.#list.addOlder(entries);
      this.#limit = Math.min(this.#list.size, MAX_ENTRIES);
      if (document.activeElement === this.#more) first?.focus();
      this.#setNext(next);
    } catch (error) {
      if (!signal.aborted) this.#showState(error);
    } finally {
      if (this.#olderRequest === request) this.#olderRequest = null;
    }
  }

  /** @param {string | null} next */
  #setNext(next) {
    this.#next = next;
    this.#more.hidden = next === null;
  }

  /**
   * @param {unknown} error Null if the entries were loaded.
   * @param {Element | false} [nothing] What is shown in place of entries.
   */
  #showState(error, nothing = false) {
    const isLost = error instanceof api.ApiError && error.status === 0;
    if (isLost) this.#tracker.down();
    else this.#tracker.up();
    this.#live.show(isLost);
    const state = error === null ? nothing : h('p', { class: 'note bad', role: 'alert' }, icon('warning'), api.sentence(error));
    // Unchanged texts are not announced again.
    if ((state ? state.textContent : '') !== this.#state.textContent) fill(this.#state, state);
  }

  /**
   * Keeps the focus of a button.
   * @param {T[]} targets
   */
  #drawTargets(targets) {
    const focused = [...this.#targets.querySelectorAll('button')].findIndex((button) => button === document.activeElement);
    fill(this.#targets, targets.length > 0 && queueTargets(targets, this.#kind.target));
    this.#targets.querySelectorAll('button')[focused]?.focus({ preventScroll: true });
  }

  #nothing() {
    const { state } = this.#wanted();
    return empty(state === null ? 'Nothing was sent yet' : `No ${this.#kind.noun[0]} is ${state}`, state === null ? this.#kind.nothingText : 'Select another state to see more.');
  }

  async #retryAll() {
    const [one, many] = this.#kind.noun;
    const isConfirmed = await confirm({ title: 'Retry all?', text: this.#kind.retryText, action: 'Retry all', dismiss: 'Keep' });
    if (isConfirmed) await this.#change(async () => `${plural(await this.#queue.retry({ all: true }), `${one} is`, `${many} are`)} sent again.`);
  }

  async #cancelAll() {
    const [one, many] = this.#kind.noun;
    const isConfirmed = await confirm({ title: 'Cancel all?', text: `Queued ${many} will not be sent. You can retry them later.`, action: 'Cancel all', dismiss: 'Keep', danger: true });
    if (isConfirmed) await this.#change(async () => `${plural(await this.#queue.cancel({ all: true }), `${one} was`, `${many} were`)} cancelled.`);
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

/**
 * @param {string} heading
 * @param {Node | string} text
 */
function empty(heading, text) {
  return h('div', { class: 'empty' }, icon('send'), h('h2', {}, heading), h('p', {}, text));
}
