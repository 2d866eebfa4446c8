// <message-tabs>: the views of a message as tabs. A panel is created when it is first shown. The default tab of the settings, or the last chosen one, is shown for the next message if that has it.

/** @import { ShownMessage } from '../../types.js' */

import * as keys from '../../lib/keys.js';
import * as prefs from '../../lib/prefs.js';
import * as settings from '../../lib/settings.js';
import { fill, h } from '../../lib/dom.js';
import { MessageHeaders } from './headers.js';
import { MessageHtml } from './html.js';
import { MessageHtmlCheck, checkOf, scoreBadge } from './html-check.js';
import { MessageLinks } from './link-list.js';
import { OutgoingSessions } from './outgoing-sessions.js';
import { MessageParts } from './parts.js';
import { MessageSession } from './session.js';
import { MessageSources } from './sources.js';
import { TabBar } from './tab-bar.js';
import { MessageText } from './text.js';

/** The result of the HTML check is loaded this long after a message was shown, in milliseconds. */
const CHECK_DELAY_MS = 1_000;

/** A panel can have controls, which are shown in the bar of the tabs. @typedef {HTMLElement & { controls?: HTMLElement[] }} Panel */

/**
 * @typedef {object} Kind
 * @property {string} name
 * @property {string} label
 * @property {(message: ShownMessage) => Panel} panel
 * @property {(message: ShownMessage) => boolean} [appliesTo] Returns whether a message has this tab; by default true.
 * @property {boolean} [hasBadge]
 */

/** In order of preference: the first one that a message has is the default. @type {Kind[]} */
const KINDS = [
  { name: 'html', label: 'HTML', panel: (message) => new MessageHtml(message), appliesTo: (message) => message.html },
  { name: 'text', label: 'Text', panel: (message) => new MessageText(message) },
  { name: 'links', label: 'Links', panel: (message) => new MessageLinks(message) },
  { name: 'headers', label: 'Headers', panel: (message) => new MessageHeaders(message) },
  { name: 'parts', label: 'Parts', panel: (message) => new MessageParts(message) },
  { name: 'source', label: 'Source', panel: (message) => new MessageSources(message) },
  { name: 'session', label: 'Session', panel: (message) => h('div', {}, new MessageSession(message), new OutgoingSessions(message)) },
  { name: 'html-check', label: 'HTML check', panel: (message) => new MessageHtmlCheck(message), appliesTo: (message) => message.html, hasBadge: true },
];

export class MessageTabs extends HTMLElement {
  /** @type {ShownMessage | null} */
  #message = null;
  #disconnected = new AbortController();
  #bar = new TabBar(KINDS, (at) => this.#choose(at));
  #panels = KINDS.map(({ name }) => h('div', { class: 'panel', role: 'tabpanel', id: `panel-${name}`, 'aria-labelledby': `tab-${name}`, hidden: true }));
  /** Ends the request for the result of the HTML check. */
  #check = new AbortController();

  connectedCallback() {
    if (!this.firstChild) fill(this, this.#bar, this.#panels);
    this.#disconnected = new AbortController();
    keys.add(KINDS.map(({ label }, at) => ({ keys: [String(at + 1)], group: 'Message', label, run: () => this.#choose(at) })), this.#disconnected.signal);
  }

  disconnectedCallback() {
    this.#disconnected.abort();
    this.#check.abort();
  }

  /** @param {ShownMessage} message */
  show(message) {
    this.#message = message;
    this.#loadBadge(message);
    const at = this.#first();
    const hadFocus = this.#panels.some((panel) => panel.contains(document.activeElement));
    this.#panels.forEach((panel, index) => index !== at && panel.replaceChildren());
    fill(this.#panels[at], KINDS[at].panel(message));
    this.#reveal(at);
    // If the focus was in the previous panel, it moves to this one, so that keys scroll it.
    const body = this.#panels[at].querySelector('.panel-body');
    if (body instanceof HTMLElement && hadFocus) body.focus({ preventScroll: true });
    else if (hadFocus) this.#bar.focusSelected();
  }

  /** Removes the message. */
  clear() {
    this.#message = null;
    this.#check.abort();
    for (const panel of this.#panels) panel.replaceChildren();
  }

  /**
   * Loads the remote content of the HTML, or removes it.
   * @param {boolean} isLoaded
   */
  loadRemote(isLoaded) {
    const panel = this.#panels[0].firstElementChild;
    if (panel instanceof MessageHtml) panel.loadRemote(isLoaded);
  }

  /**
   * Shows the result of the HTML check on its tab. It is not needed at once, so other requests come first.
   * @param {ShownMessage} message
   */
  #loadBadge(message) {
    this.#check.abort();
    const { signal } = this.#check = new AbortController();
    this.#bar.setBadge('html-check', null);
    if (!message.html) return;
    const draw = () => checkOf(message).then((check) => signal.aborted || this.#bar.setBadge('html-check', scoreBadge(check)), () => {});
    const timer = setTimeout(draw, CHECK_DELAY_MS);
    signal.addEventListener('abort', () => clearTimeout(timer));
    window.addEventListener('restante:check.clients', draw, { signal });
  }

  /** Returns the tab in which the message is opened. */
  #first() {
    const setting = settings.get('defaultTab');
    const name = setting === 'last' ? prefs.read('message.tab', 'html') : setting;
    const preferred = KINDS.findIndex((kind) => kind.name === name);
    return preferred >= 0 && this.#has(preferred) ? preferred : KINDS.findIndex((_, index) => this.#has(index));
  }

  /** @param {number} at */
  #has(at) {
    const { appliesTo } = KINDS[at];
    return this.#message !== null && (!appliesTo || appliesTo(this.#message));
  }

  /** @param {number} at */
  #choose(at) {
    if (!this.#message || !this.#has(at)) return;
    prefs.write('message.tab', KINDS[at].name);
    const panel = this.#panels[at];
    if (!panel.firstChild) fill(panel, KINDS[at].panel(this.#message));
    const inside = this.contains(document.activeElement) && !panel.contains(document.activeElement);
    this.#reveal(at);
    // The focused element is hidden now, or is a tab that is no longer selected.
    if (inside) this.#bar.focusSelected();
  }

  /** @param {number} at */
  #reveal(at) {
    this.dataset.tab = KINDS[at].name;
    this.#panels.forEach((panel, index) => (panel.hidden = index !== at));
    const panel = /** @type {Panel | null} */ (this.#panels[at].firstElementChild);
    this.#bar.show(at, KINDS.map((_, index) => this.#has(index)), panel?.controls ?? []);
    this.dispatchEvent(new Event('tab-change', { bubbles: true }));
  }
}

customElements.define('message-tabs', MessageTabs);
