// <message-tabs>: the views of a message as tabs. A panel is created when it is first shown. The last chosen tab is shown for the
// next message if that has it.

/** @import { Message } from '../../types.js' */

import * as keys from '../../lib/keys.js';
import * as prefs from '../../lib/prefs.js';
import { fill, h, set } from '../../lib/dom.js';
import { count } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { MessageAttachments } from './attachments.js';
import { MessageHeaders } from './headers.js';
import { MessageHtml } from './html.js';
import { MessageLinks } from './link-list.js';
import { MessageParts } from './parts.js';
import { MessageSession } from './session.js';
import { MessageSource } from './source.js';
import { MessageText } from './text.js';

/**
 * @typedef {object} Kind
 * @property {string} name
 * @property {string} label
 * @property {(message: Message) => HTMLElement} panel
 * @property {(message: Message) => boolean} [appliesTo] Returns whether a message has this tab; by default true.
 */

/** In order of preference: the first one that a message has is the default. @type {Kind[]} */
const KINDS = [
  { name: 'html', label: 'HTML', panel: (message) => new MessageHtml(message), appliesTo: (message) => message.html },
  { name: 'text', label: 'Text', panel: (message) => new MessageText(message) },
  { name: 'links', label: 'Links', panel: (message) => new MessageLinks(message) },
  { name: 'headers', label: 'Headers', panel: (message) => new MessageHeaders(message) },
  { name: 'parts', label: 'Parts', panel: (message) => new MessageParts(message) },
  { name: 'source', label: 'Source', panel: (message) => new MessageSource(message) },
  { name: 'session', label: 'Session', panel: (message) => new MessageSession(message) },
  { name: 'attachments', label: 'Attachments', panel: (message) => new MessageAttachments(message), appliesTo: (message) => message.attachments.length > 0 },
];

export class MessageTabs extends HTMLElement {
  /** @type {Message | null} */
  #message = null;
  #disconnected = new AbortController();
  #attachments = h('span', { class: 'badge' });
  #tabs = KINDS.map((kind) => this.#tab(kind));
  #panels = KINDS.map(({ name }) => h('div', { class: 'panel', role: 'tabpanel', id: `panel-${name}`, 'aria-labelledby': `tab-${name}`, hidden: true }));

  connectedCallback() {
    if (!this.firstChild) {
      const list = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Views of the message', onkeydown: (event) => event instanceof KeyboardEvent && this.#move(event) }, this.#tabs);
      fill(this, list, this.#panels);
    }
    this.#disconnected = new AbortController();
    keys.add(KINDS.map(({ label }, at) => ({ keys: [String(at + 1)], group: 'Message', label, run: () => this.#choose(at) })), this.#disconnected.signal);
  }

  disconnectedCallback() {
    this.#disconnected.abort();
  }

  /** @param {Message} message */
  show(message) {
    this.#message = message;
    // Tabs that do not apply are disabled, not hidden, so that the others do not move.
    this.#tabs.forEach((tab, at) => set(tab, { 'aria-disabled': !this.#has(at) && 'true' }));
    this.#attachments.textContent = count(message.attachments.length);
    this.#attachments.hidden = message.attachments.length === 0;

    const preferred = KINDS.findIndex(({ name }) => name === prefs.read('message.tab', 'html'));
    const at = preferred >= 0 && this.#has(preferred) ? preferred : KINDS.findIndex((_, index) => this.#has(index));
    const hadFocus = this.#panels.some((panel) => panel.contains(document.activeElement));
    this.#panels.forEach((panel, index) => index !== at && panel.replaceChildren());
    fill(this.#panels[at], KINDS[at].panel(message));
    this.#reveal(at);
    // If the focus was in the previous panel, it moves to this one, so that keys scroll it.
    const body = this.#panels[at].querySelector('.panel-body');
    if (hadFocus) (body instanceof HTMLElement ? body : this.#tabs[at]).focus();
  }

  /** Removes the message. */
  clear() {
    this.#message = null;
    for (const panel of this.#panels) panel.replaceChildren();
  }

  /** @param {Kind} kind */
  #tab({ name, label }) {
    const button = h('button', { class: 'tab', type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': `panel-${name}`, onclick: () => this.#choose(KINDS.findIndex((kind) => kind.name === name)) });
    fill(button, name === 'attachments' && icon('attachment'), h('span', { class: 'tab-label', 'data-label': label }, label), name === 'attachments' && this.#attachments);
    return button;
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
    if (inside) this.#tabs[at].focus();
  }

  /** @param {number} at */
  #reveal(at) {
    this.#tabs.forEach((tab, index) => {
      tab.setAttribute('aria-selected', String(index === at));
      tab.tabIndex = index === at ? 0 : -1;
      this.#panels[index].hidden = index !== at;
    });
    this.#tabs[at].scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }

  /** @param {KeyboardEvent} event */
  #move(event) {
    const enabled = this.#tabs.flatMap((_, at) => (this.#has(at) ? [at] : []));
    const current = enabled.findIndex((at) => this.#tabs[at] === document.activeElement);
    /** @type {Record<string, number>} */
    const steps = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: enabled.length - 1 };
    if (!(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    this.#choose(enabled[(steps[event.key] + enabled.length) % enabled.length]);
  }
}

customElements.define('message-tabs', MessageTabs);
