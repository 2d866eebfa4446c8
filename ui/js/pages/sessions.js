// The page `/sessions`: SMTP sessions with their outcome and transcript. There are no events for new sessions, so the page has
// a Refresh button.

/** @import { Route, Session } from '../types.js' */

import * as api from '../lib/api.js';
import * as paths from '../lib/paths.js';
import { fill, h } from '../lib/dom.js';
import { clock, plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { go } from '../lib/router.js';
import { title } from '../lib/title.js';
import { visible } from '../lib/visible.js';
import { TimeAgo } from '../components/time-ago.js';
import { client, transcript } from '../components/transcript.js';

export class SessionsPage extends HTMLElement {
  /** @type {Route} */
  #route = { page: 'missing' };
  #request = new AbortController();
  /** The cursor of the next page, or null. @type {string | null} */
  #next = null;

  #refused = h('input', { type: 'checkbox', onchange: () => go(paths.sessions({ refused: this.#refused.checked }), { replace: true }) });
  #choice = h('label', { class: 'sessions-choice' }, this.#refused, 'Only with refusals');
  #all = h('a', { href: paths.sessions() }, 'All sessions');
  #state = h('div', { class: 'sessions-state', 'aria-live': 'polite' });
  #list = h('ol', { class: 'sessions sheet', 'aria-label': 'Sessions, latest first', hidden: true });
  #more = h('button', { class: 'button', type: 'button', hidden: true, onclick: () => this.#load(this.#next) }, 'Show more');

  get route() {
    return this.#route;
  }

  set route(route) {
    this.#route = route;
    if (this.isConnected) this.#follow();
  }

  connectedCallback() {
    title('Sessions');
    const refresh = h('button', { class: 'button', type: 'button', onclick: () => this.#load(null) }, icon('refresh'), 'Refresh');
    fill(this, h('div', { class: 'page sessions-page' },
      h('div', { class: 'sessions-head' }, h('h1', { tabindex: -1 }, 'SMTP sessions'), h('span', { class: 'spread' }), this.#all, this.#choice, refresh),
      h('p', { class: 'soft' }, 'Clients that sent messages or tried to, and the transcript of each session. Message contents and passwords are not recorded.'),
      this.#state, this.#list, h('div', { class: 'search-more' }, this.#more)));
    this.#follow();
  }

  disconnectedCallback() {
    this.#request.abort();
  }

  /** Loads the sessions of the address. */
  #follow() {
    if (this.#route.page !== 'sessions') return;
    const { refused, id } = this.#route;
    this.#refused.checked = refused;
    this.#choice.hidden = id !== null;
    this.#all.hidden = id === null;
    this.#load(null);
  }

  /**
   * Loads sessions: the latest, which replace those that are shown, or those before one.
   * @param {string | null} before
   */
  async #load(before) {
    if (this.#route.page !== 'sessions') return;
    const { refused, id } = this.#route;
    this.#request.abort();
    const { signal } = this.#request = new AbortController();
    const server = await api.about().catch(() => null);
    if (signal.aborted) return;
    if (server?.['monitor-visible'] === false) return fill(this.#state, sessionsDisabled());
    try {
      const { sessions, next } = id === null
        ? await api.sessions({ refused, before: before ?? undefined, signal })
        : { sessions: [(await api.session(id, signal)).session], next: null };
      const hadFocus = document.activeElement === this.#more;
      const rows = sessions.map((session) => row(session, id !== null));
      if (before === null) fill(this.#list, rows);
      else this.#list.append(...rows);
      this.#next = next;
      this.#more.hidden = next === null;
      this.#list.hidden = this.#list.children.length === 0;
      if (hadFocus) rows.at(0)?.querySelector('summary')?.focus();
      fill(this.#state, this.#list.hidden && nothing(refused));
    } catch (error) {
      if (signal.aborted) return;
      fill(this.#state, h('p', { class: 'note bad', role: 'alert' }, icon('warning'), api.sentence(error)));
    }
  }
}

function sessionsDisabled() {
  return h('p', { class: 'note' }, icon('shield'), 'This server does not show the sessions of all clients. Open a message and select the tab Session to see how it was delivered.');
}

/** @param {boolean} refused */
function nothing(refused) {
  return h('div', { class: 'empty' }, icon('envelope'), h('h2', {}, refused ? 'No refusals' : 'No sessions yet'),
    h('p', {}, refused ? 'No recorded session has a refusal.' : 'Clients that connect by SMTP or LMTP are listed here.'));
}

/**
 * Returns a session, which expands to its transcript.
 * @param {Session} session
 * @param {boolean} isOpen
 */
function row(session, isOpen) {
  const { id, tls, user, refused, 'started-millis': started, 'transaction-count': count } = session;
  const content = h('div', { class: 'session-transcript' });
  const details = h('details', { class: 'session', open: isOpen },
    h('summary', {},
      h('span', { class: 'session-time soft number' }, TimeAgo.create(started, clock)),
      h('span', { class: 'session-client truncate' }, ...client(session)),
      h('span', { class: 'session-about truncate' }, about(session)),
      h('span', { class: 'session-marks' },
        tls !== null && h('span', { class: 'badge' }, 'TLS'),
        user !== null && h('span', { class: 'badge' }, h('bdi', {}, visible(user))),
        count !== null && count > 1 && h('span', { class: 'badge' }, plural(count, 'message')),
        refused > 0 && h('span', { class: 'badge refused' }, `${refused} refused`))),
    content);
  details.addEventListener('toggle', () => details.open && !content.firstChild && showTranscript(content, id));
  return h('li', {}, details);
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
  fill(element, h('p', { class: 'soft' }, 'Loading…'));
  try {
    fill(element, transcript(await api.session(id)));
  } catch (error) {
    fill(element, h('p', { class: 'note bad', role: 'alert' }, icon('warning'), api.sentence(error)));
  }
}

customElements.define('sessions-page', SessionsPage);
