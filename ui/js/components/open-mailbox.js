// <open-mailbox>: a large field that opens a mailbox, and below it the recently opened mailboxes.

import * as paths from '../lib/paths.js';
import * as prefs from '../lib/prefs.js';
import { fill, h } from '../lib/dom.js';
import { setUpMailboxField } from '../lib/mailbox-field.js';
import { icon } from '../lib/icons.js';
import { visible } from '../lib/visible.js';

export class OpenMailbox extends HTMLElement {
  /** Aborted when the element is removed. */
  #disconnected = new AbortController();
  #recent = h('ul', { class: 'chips', 'aria-label': 'Recently opened' });

  connectedCallback() {
    this.#disconnected = new AbortController();
    const input = h('input', { class: 'field', id: 'open-mailbox', type: 'text', placeholder: 'name or name@example.org', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', enterkeyhint: 'go' });
    // On a page without a heading of its own, this is the first one.
    const heading = this.closest('main')?.querySelector('h1') ? 'h2' : 'h1';
    const form = h('form', { class: 'open-form' },
      h(heading, {}, h('label', { for: 'open-mailbox' }, 'Open a mailbox')),
      h('div', { class: 'open-line' }, input, h('button', { class: 'button main', type: 'submit' }, 'Open')));
    setUpMailboxField(form, input);
    fill(this, form, this.#recent);
    this.#draw();
    window.addEventListener('restante:recent', () => this.#draw(), { signal: this.#disconnected.signal });
  }

  disconnectedCallback() {
    this.#disconnected.abort();
  }

  #draw() {
    const names = prefs.recent();
    this.#recent.hidden = names.length === 0;
    fill(this.#recent, names.map((name) => h('li', { class: 'chip' },
      h('a', { class: 'truncate', href: paths.mailbox(name), title: visible(name) }, h('bdi', {}, visible(name))),
      h('button', { class: 'chip-forget', type: 'button', 'aria-label': `Remove ${visible(name)} from the recent mailboxes`, onclick: () => this.#forget(name) }, icon('close')))));
  }

  /**
   * Removes a recent mailbox. The focus moves to the next one, so that several can be removed in a row.
   * @param {string} name
   */
  #forget(name) {
    const index = prefs.recent().indexOf(name);
    prefs.forget(name);
    const buttons = /** @type {NodeListOf<HTMLElement>} */ (this.#recent.querySelectorAll('.chip-forget'));
    const next = buttons[Math.min(index, buttons.length - 1)] ?? this.querySelector('input');
    next?.focus();
  }
}

customElements.define('open-mailbox', OpenMailbox);
