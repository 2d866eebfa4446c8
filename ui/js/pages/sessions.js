// The page `/sessions`: SMTP sessions with their outcome and transcript. There are no events for sessions, so the page requests them
// repeatedly.

/** @import { Route, Session } from '../types.js' */

import * as api from '../lib/api.js';
import * as connection from '../lib/connection.js';
import * as paths from '../lib/paths.js';
import { fill, h } from '../lib/dom.js';
import { clock, plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { Poll } from '../lib/poll.js';
import { go } from '../lib/router.js';
import { title } from '../lib/title.js';
import { visible } from '../lib/visible.js';
import { liveState, pageHead } from '../components/page-head.js';
import { TimeAgo } from '../components/time-ago.js';
import { client, transcript } from '../components/transcript.js';

/** @typedef {{ element: HTMLElement, update(session: Session): void }} Row */

export class SessionsPage extends HTMLElement {
  /** @type {Route} */
  #route = { page: 'missing' };
  #request = new AbortController();
  /** The request of older sessions; null if none is running. @type {AbortController | null} */
  #olderRequest = null;
  #poll = new Poll(() => this.#load(), { repetitions: Infinity });
  #tracker = connection.track();
  /** The cursor of the next page, or null. @type {string | null} */
  #next = null;
  /** The sessions that are shown, the latest first. @type {Map<string, Row>} */
  #rows = new Map();

  #live = liveState();
  #refused = h('input', { type: 'checkbox', onchange: () => go(paths.sessions({ refused: this.#refused.checked }), { replace: true }) });
  #choice = h('label', { class: 'sessions-choice' }, this.#refused, 'Refused only');
  #all = h('a', { class: 'button', href: paths.sessions() }, 'All sessions');
  #state = h('div', { class: 'page-state', 'aria-live': 'polite' });
  #list = h('ol', { class: 'sessions sheet', 'aria-label': 'Sessions, latest first', hidden: true });
  #more = h('button', { class: 'button', type: 'button', hidden: true, onclick: () => this.#loadOlder() }, 'Show more');

  get route() {
    return this.#route;
  }

  set route(route) {
    this.#route = route;
    if (this.isConnected) this.#follow();
  }

  connectedCallback() {
    title('Sessions');
    fill(this, h('div', { class: 'page' },
      pageHead('SMTP sessions', this.#live.element, h('span', { class: 'spread' }), this.#all, this.#choice),
      h('p', { class: 'soft' }, 'Connections of mail clients and their transcripts. Message contents and passwords are not recorded.'),
      this.#state, this.#list, h('div', { class: 'page-more' }, this.#more)));
    this.#follow();
  }

  disconnectedCallback() {
    this.#poll.stop();
    this.#request.abort();
    this.#olderRequest?.abort();
    this.#tracker.up();
  }

  /** Shows the sessions of the address. */
  #follow() {
    if (this.#route.page !== 'sessions') return;
    const { refused, id } = this.#route;
    this.#refused.checked = refused;
    this.#choice.hidden = id !== null;
    this.#all.hidden = id === null;
    this.#olderRequest?.abort();
    this.#olderRequest = null;
    this.#setRows([]);
    this.#setNext(null);
    this.#poll.startNow();
  }

  /** Loads the latest sessions. Returns whether to load them again; true if another request has replaced this one. */
  async #load() {
    if (this.#route.page !== 'sessions') return false;
    // The cursor of the older sessions must not change.
    if (this.#olderRequest) return true;
    const { refused, id } = this.#route;
    this.#request.abort();
    const { signal } = this.#request = new AbortController();
    const server = await api.about().catch(() => null);
    if (signal.aborted) return true;
    if (server?.['monitor-visible'] === false) {
      fill(this.#state, h('p', { class: 'note' }, icon('shield'), 'This server does not show the sessions of all clients. Open a message and select the tab Session to see how it was delivered.'));
      return false;
    }
    try {
      const { sessions, next } = id === null ? await api.sessions({ refused, signal }) : { sessions: [(await api.session(id, signal)).session], next: null };
      this.#showLatest(sessions, next);
      this.#showState(null);
      return id === null || sessions[0]['ended-millis'] === null;
    } catch (error) {
      if (!signal.aborted) this.#showState(error);
      return true;
    }
  }

  /**
   * Adds the latest sessions and updates those that are shown. Older ones stay, unless there is a gap.
   * @param {Session[]} sessions
   * @param {string | null} next
   */
  #showLatest(sessions, next) {
    const ids = [...this.#rows.keys()];
    const end = ids.indexOf(sessions.at(-1)?.id ?? '');
    const isContinued = next !== null && end >= 0;
    const older = isContinued ? ids.slice(end + 1) : [];
    this.#setRows(sessions, older);
    if (older.length === 0) this.#setNext(next);
  }

  async #loadOlder() {
    if (this.#route.page !== 'sessions' || this.#next === null || this.#olderRequest) return;
    this.#request.abort();
    const request = this.#olderRequest = new AbortController();
    const { signal } = request;
    try {
      const { sessions, next } = await api.sessions({ refused: this.#route.refused, before: this.#next, signal });
      if (signal.aborted) return;
      const rows = sessions.map((session) => this.#row(session));
      this.#list.append(...rows);
      if (document.activeElement === this.#more) rows.at(0)?.querySelector('summary')?.focus();
      this.#setNext(next);
    } catch (error) {
      if (!signal.aborted) this.#showState(error);
    } finally {
      if (this.#olderRequest === request) this.#olderRequest = null;
    }
  }

  /**
   * Shows these sessions and then those with the given ids. Elements of sessions that stay are not replaced.
   * @param {Session[]} sessions
   * @param {string[]} [older]
   */
  #setRows(sessions, older = []) {
    const before = this.#rows;
    const kept = new Set([...sessions.map(({ id }) => id), ...older]);
    for (const [id, { element }] of before) if (!kept.has(id)) element.remove();
    this.#rows = new Map();
    let next = this.#list.firstElementChild;
    for (const session of sessions) {
      const known = before.get(session.id);
      if (known) {
        known.update(session);
        this.#rows.set(session.id, known);
        next = known.element.nextElementSibling;
      } else {
        this.#list.insertBefore(this.#row(session), next);
      }
    }
    for (const id of older) this.#rows.set(id, /** @type {Row} */ (before.get(id)));
    this.#list.hidden = this.#rows.size === 0;
  }

  /** @param {Session} session */
  #row(session) {
    const row = createRow(session, this.#route.page === 'sessions' && this.#route.id !== null);
    this.#rows.set(session.id, row);
    return row.element;
  }

  /** @param {string | null} next */
  #setNext(next) {
    this.#next = next;
    this.#more.hidden = next === null;
  }

  /** @param {unknown} error Null if the sessions were loaded. */
  #showState(error) {
    const isLost = error instanceof api.ApiError && error.status === 0;
    if (isLost) this.#tracker.down();
    else this.#tracker.up();
    this.#live.show(isLost);
    const key = error === null ? (this.#list.hidden ? `none ${this.#refused.checked}` : '') : api.sentence(error);
    if (this.#state.dataset.key === key) return;
    this.#state.dataset.key = key;
    fill(this.#state, error !== null ? h('p', { class: 'note bad', role: 'alert' }, icon('warning'), key) : this.#list.hidden && nothing(this.#refused.checked));
  }
}

/** @param {boolean} refused */
function nothing(refused) {
  return h('div', { class: 'empty' }, icon('envelope'), h('h2', {}, refused ? 'No refusals' : 'No sessions yet'),
    h('p', {}, refused ? 'No recorded session has a refusal.' : 'Clients that connect by SMTP or LMTP are listed here.'));
}

/**
 * Creates a session, which expands to its transcript.
 * @param {Session} session
 * @param {boolean} isOpen
 * @returns {Row}
 */
function createRow(session, isOpen) {
  const summary = h('summary', {});
  const content = h('div', { class: 'session-transcript' });
  const details = h('details', { class: 'session', open: isOpen }, summary, content);
  details.addEventListener('toggle', () => details.open && !content.firstChild && showTranscript(content, session.id));
  let shown = '';
  const update = (/** @type {Session} */ current) => {
    const text = JSON.stringify(current);
    if (text === shown) return;
    const isFirst = shown === '';
    shown = text;
    fill(summary, describe(current));
    if (isFirst) return;
    if (details.open) showTranscript(content, session.id);
    else fill(content);
  };
  update(session);
  return { element: h('li', {}, details), update };
}

/** @param {Session} session */
function describe(session) {
  const { tls, user, refused, 'started-millis': started, 'ended-millis': ended, 'transaction-count': count } = session;
  return [
    h('span', { class: 'session-time soft number' }, TimeAgo.create(started, clock)),
    h('span', { class: 'session-client truncate' }, ...client(session)),
    h('span', { class: 'session-about truncate' }, about(session)),
    h('span', { class: 'session-marks' },
      count !== null && count > 1 && h('span', { class: 'session-count soft number' }, plural(count, 'message')),
      ended === null && h('span', { class: 'badge' }, 'open'),
      tls !== null && h('span', { class: 'badge' }, 'TLS'),
      user !== null && h('span', { class: 'badge truncate', title: visible(user) }, h('bdi', {}, visible(user))),
      refused > 0 && h('span', { class: 'badge refused' }, `${refused} refused`)),
  ];
}

/**
 * Returns a summary of the last transaction of the session.
 * @param {Session} session
 */
function about({ transactions }) {
  const last = transactions.at(-1);
  if (!last) return h('span', { class: 'soft' }, 'no message');
  const [first, ...others] = last.to;
  return h('bdi', {}, `${visible(last.from) || '<>'} → ${first === undefined ? 'no recipient' : visible(first)}${others.length > 0 ? ` and ${plural(others.length, 'other')}` : ''}`);
}

/**
 * @param {HTMLElement} element
 * @param {string} id
 */
async function showTranscript(element, id) {
  if (!element.firstChild) fill(element, h('p', { class: 'soft' }, 'Loading…'));
  try {
    fill(element, transcript(await api.session(id)));
  } catch (error) {
    fill(element, h('p', { class: 'note bad', role: 'alert' }, icon('warning'), api.sentence(error)));
  }
}

customElements.define('sessions-page', SessionsPage);
