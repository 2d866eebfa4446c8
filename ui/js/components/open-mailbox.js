// <open-mailbox>: the large field of the home page, and beneath it the mailboxes that were opened here before.

import * as paths from '../lib/paths.js';
import * as prefs from '../lib/prefs.js';
import { fill, h } from '../lib/dom.js';
import { opens } from '../lib/go-to.js';
import { icon } from '../lib/icons.js';
import { visible } from '../lib/visible.js';

export class OpenMailbox extends HTMLElement {
  /** @type {AbortController | null} */
  #life = null;
  #recent = h('ul', { class: 'chips', 'aria-label': 'Recently opened' });

  connectedCallback() {
    this.#life = new AbortController();
    const input = h('input', { class: 'field', id: 'open-mailbox', type: 'text', placeholder: 'name or name@example.org', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', enterkeyhint: 'go' });
    const form = h('form', { class: 'open-form', role: 'search', 'aria-label': 'Open a mailbox' },
      h('h1', {}, h('label', { for: 'open-mailbox' }, 'Open a mailbox')),
      h('div', { class: 'open-line' }, input, h('button', { class: 'button main', type: 'submit' }, 'Open')));
    opens(form, input);
    fill(this, form, this.#recent);
    this.#draw();
    window.addEventListener('restante:recent', () => this.#draw(), { signal: this.#life.signal });
  }

  disconnectedCallback() {
    this.#life?.abort();
  }

  #draw() {
    const names = prefs.recent();
    this.#recent.hidden = names.length === 0;
    fill(this.#recent, names.map((name) => h('li', { class: 'chip' },
      h('a', { class: 'cut', href: paths.mailbox(name), title: visible(name) }, h('bdi', {}, visible(name))),
      h('button', { class: 'chip-forget', type: 'button', 'aria-label': `Forget ${visible(name)}`, onclick: () => this.#forget(name) }, icon('close')))));
  }

  /**
   * The focus goes to the next one, so that several can be forgotten in a row.
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
