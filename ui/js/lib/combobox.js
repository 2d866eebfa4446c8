// Suggestions for a text field, as an ARIA combobox with a list box: the arrows select a suggestion, Enter chooses it, Escape closes
// the list. https://www.w3.org/WAI/ARIA/apg/patterns/combobox/

import { fill, h, set } from './dom.js';
import { visible } from './visible.js';

/** The delay between typing and loading, in milliseconds. */
const TYPING_DELAY_MS = 150;

/** @typedef {{ value: string, note: string }} Suggestion `note` is shown next to the value. */

/**
 * @typedef {object} Options
 * @property {string} label The name of the list for screen readers.
 * @property {(text: string, signal: AbortSignal) => AsyncIterable<Suggestion[]>} load Yields the suggestions for a text; each result replaces the one before.
 * @property {(value: string) => void} choose Called with the chosen suggestion.
 * @property {boolean} [isInline] Whether the list is always open, as in a dialog.
 */

export class Combobox {
  #input;
  #options;
  /** @type {Suggestion[]} */
  #suggestions = [];
  /** The index of the selected suggestion, or -1. */
  #active = -1;
  #isOpen = false;
  #request = new AbortController();
  /** @type {number | undefined} */
  #timer;

  /** The list. The caller adds it to the document, after the field. */
  list;

  /**
   * @param {HTMLInputElement} input It needs an id.
   * @param {Options} options
   */
  constructor(input, options) {
    this.#input = input;
    this.#options = options;
    this.list = h('ul', { class: options.isInline ? 'suggestions inline' : 'suggestions', id: `${input.id}-suggestions`, role: 'listbox', 'aria-label': options.label, hidden: true });
    set(input, { role: 'combobox', 'aria-autocomplete': 'list', 'aria-controls': this.list.id, 'aria-expanded': 'false' });
    input.addEventListener('input', () => this.#openSoon());
    input.addEventListener('keydown', (event) => this.#pressed(event));
    input.addEventListener('blur', () => options.isInline || this.close());
    input.addEventListener('click', () => this.#isOpen || this.open());
    if (options.isInline) input.addEventListener('focus', () => this.open());
    // The field keeps the focus.
    this.list.addEventListener('mousedown', (event) => event.preventDefault());
    this.list.addEventListener('click', ({ target }) => this.#clicked(target));
  }

  /** Loads and shows the suggestions for the text of the field. */
  async open() {
    clearTimeout(this.#timer);
    this.#request.abort();
    const { signal } = this.#request = new AbortController();
    this.#isOpen = true;
    try {
      for await (const suggestions of this.#options.load(this.#input.value.trim(), signal)) {
        if (signal.aborted) return;
        this.#show(suggestions);
      }
    } catch {
      // Without suggestions the field still works.
    }
  }

  close() {
    clearTimeout(this.#timer);
    this.#request.abort();
    this.#isOpen = false;
    this.#show([]);
  }

  #openSoon() {
    this.#select(-1);
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.open(), TYPING_DELAY_MS);
  }

  /** @param {Suggestion[]} suggestions */
  #show(suggestions) {
    const selected = this.#suggestions[this.#active]?.value;
    this.#suggestions = suggestions;
    fill(this.list, suggestions.map(({ value, note }, index) => h('li', { class: 'suggestion', id: `${this.list.id}-${index}`, role: 'option' },
      h('bdi', { class: 'truncate' }, visible(value)), note !== '' && h('span', { class: 'soft number' }, note))));
    this.list.hidden = suggestions.length === 0;
    set(this.#input, { 'aria-expanded': String(!this.list.hidden) });
    this.#select(suggestions.findIndex(({ value }) => value === selected));
  }

  /** @param {number} index */
  #select(index) {
    this.#active = index;
    [...this.list.children].forEach((option, at) => set(option, { 'aria-selected': String(at === index) }));
    const option = this.list.children[index];
    set(this.#input, { 'aria-activedescendant': option?.id });
    option?.scrollIntoView({ block: 'nearest' });
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    const { key, isComposing, ctrlKey, altKey, metaKey } = event;
    if (isComposing || ctrlKey || altKey || metaKey) return;
    const isShown = !this.list.hidden;
    if (key === 'ArrowDown' || key === 'ArrowUp') {
      event.preventDefault();
      if (isShown) this.#step(key === 'ArrowDown' ? 1 : -1);
      else this.open();
    } else if (key === 'Enter' && this.#active >= 0) {
      event.preventDefault();
      this.#choose(this.#active);
    } else if (key === 'Escape' && isShown && !this.#options.isInline) {
      event.preventDefault();
      this.close();
    }
  }

  /**
   * Selects the next or the previous suggestion. After the last one, none is selected.
   * @param {1 | -1} by
   */
  #step(by) {
    const places = this.#suggestions.length + 1;
    this.#select(((this.#active + 1 + by + places) % places) - 1);
  }

  /** @param {EventTarget | null} target */
  #clicked(target) {
    const option = target instanceof Element ? target.closest('[role=option]') : null;
    if (option) this.#choose([...this.list.children].indexOf(option));
  }

  /** @param {number} index */
  #choose(index) {
    const { value } = this.#suggestions[index];
    this.close();
    this.#options.choose(value);
  }
}
