// <message-tabs>: the views of a message as tabs, and the attachments below the HTML and the text. A panel is created when it is
// first shown. The default tab of the settings, or the last chosen one, is shown for the next message if that has it.

/** @import { ShownMessage } from '../../types.js' */

import * as keys from '../../lib/keys.js';
import * as prefs from '../../lib/prefs.js';
import * as settings from '../../lib/settings.js';
import { fill, h, set } from '../../lib/dom.js';
import { MessageAttachments } from './attachments.js';
import { MessageHeaders } from './headers.js';
import { MessageHtml } from './html.js';
import { MessageHtmlCheck } from './html-check.js';
import { MessageHtmlSource } from './html-source.js';
import { MessageLinks } from './link-list.js';
import { OutgoingSessions } from './outgoing-sessions.js';
import { MessageParts } from './parts.js';
import { MessageSession } from './session.js';
import { MessageSource } from './source.js';
import { TabBar } from './tab-bar.js';
import { MessageText } from './text.js';

/**
 * @typedef {object} Kind
 * @property {string} name
 * @property {string} label
 * @property {(message: ShownMessage) => HTMLElement} panel
 * @property {(message: ShownMessage) => boolean} [appliesTo] Returns whether a message has this tab; by default true.
 * @property {boolean} [isReading] True if the attachments are shown below.
 */

/** In order of preference: the first one that a message has is the default. @type {Kind[]} */
const KINDS = [
  { name: 'html', label: 'HTML', panel: (message) => new MessageHtml(message), appliesTo: (message) => message.html, isReading: true },
  { name: 'text', label: 'Text', panel: (message) => new MessageText(message), isReading: true },
  { name: 'html-source', label: 'HTML source', panel: (message) => new MessageHtmlSource(message), appliesTo: (message) => message.html },
  { name: 'links', label: 'Links', panel: (message) => new MessageLinks(message) },
  { name: 'headers', label: 'Headers', panel: (message) => new MessageHeaders(message) },
  { name: 'parts', label: 'Parts', panel: (message) => new MessageParts(message) },
  { name: 'source', label: 'Source', panel: (message) => new MessageSource(message) },
  { name: 'session', label: 'Session', panel: (message) => h('div', {}, new MessageSession(message), new OutgoingSessions(message)) },
  { name: 'html-check', label: 'HTML check', panel: (message) => new MessageHtmlCheck(message), appliesTo: (message) => message.html },
];

export class MessageTabs extends HTMLElement {
  /** @type {ShownMessage | null} */
  #message = null;
  #disconnected = new AbortController();
  #bar = new TabBar(KINDS, (at) => this.#choose(at));
  #panels = KINDS.map(({ name }) => h('div', { class: 'panel', role: 'tabpanel', id: `panel-${name}`, 'aria-labelledby': `tab-${name}`, hidden: true }));
  #attachments = new MessageAttachments();

  connectedCallback() {
    if (!this.firstChild) fill(this, this.#bar, this.#panels, this.#attachments);
    this.#disconnected = new AbortController();
    keys.add(KINDS.map(({ label }, at) => ({ keys: [String(at + 1)], group: 'Message', label, run: () => this.#choose(at) })), this.#disconnected.signal);
  }

  disconnectedCallback() {
    this.#disconnected.abort();
  }

  /** @param {ShownMessage} message */
  show(message) {
    this.#message = message;
    this.#attachments.show(message);
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
    for (const panel of this.#panels) panel.replaceChildren();
  }

  /** Scrolls to the attachments; shows a tab that has them below it. */
  showAttachments() {
    const reading = KINDS.findIndex(({ isReading }, at) => isReading && this.#has(at));
    if (!KINDS.some(({ name, isReading }) => isReading && name === this.dataset.tab)) this.#choose(reading);
    this.#attachments.reveal();
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
    this.#bar.show(at, KINDS.map((_, index) => this.#has(index)));
    this.#panels.forEach((panel, index) => (panel.hidden = index !== at));
    set(this.#attachments, { hidden: !KINDS[at].isReading });
    this.dataset.tab = KINDS[at].name;
    this.dispatchEvent(new Event('tab-change', { bubbles: true }));
  }
}

customElements.define('message-tabs', MessageTabs);
