// <tag-editor>: the tags of a message as chips, which can be added and removed. After a change it dispatches `tagged`, which bubbles,
// with { id, tags }.

/** @import { ShownMessage } from '../../types.js' */

import * as api from '../../lib/api.js';
import * as paths from '../../lib/paths.js';
import { fill, h, set } from '../../lib/dom.js';
import { announce, toast } from '../../lib/feedback.js';
import { tagTerm } from '../../lib/filters.js';
import { icon } from '../../lib/icons.js';
import { colorTag } from '../../lib/tags.js';
import { visible } from '../../lib/visible.js';

/** The limits of the server. */
const MAX_TAGS = 20;
const MAX_LENGTH = 64;

export class TagEditor extends HTMLElement {
  #message;
  #isSending = false;

  /** @param {ShownMessage} message Its envelope is known. */
  constructor(message) {
    super();
    this.#message = message;
  }

  connectedCallback() {
    if (!this.firstChild) this.#draw();
  }

  get #tags() {
    return this.#message.whole?.tags ?? [];
  }

  #draw() {
    const chips = this.#tags.map((tag) => this.#chip(tag));
    const add = h('button', { class: 'tag-chip add', type: 'button', title: 'Add a tag', disabled: chips.length >= MAX_TAGS, onclick: () => this.#edit(add) }, icon('plus'), 'Tag');
    fill(this, chips.length > 0 && h('ul', { class: 'tag-chips', 'aria-label': 'Tags' }, chips), add);
    return add;
  }

  /** @param {string} tag */
  #chip(tag) {
    const name = visible(tag);
    const query = tagTerm(tag);
    const link = h('a', { href: paths.search({ query }), title: 'Show all messages with this tag' }, h('bdi', {}, name));
    // If the server hides all mail, only the messages of a mailbox can be searched.
    api.about().then((server) => server['monitor-visible'] === false && set(link, { href: paths.search({ query, mailbox: this.#message.mailbox }) }), () => {});
    return colorTag(h('li', { class: 'tag-chip tag' },
      link,
      h('button', { class: 'tag-remove', type: 'button', 'aria-label': `Remove the tag ${name}`, title: 'Remove this tag', onclick: () => this.#save((tags) => tags.filter((other) => other !== tag)) }, icon('close'))), tag);
  }

  /**
   * Replaces the button by a field.
   * @param {HTMLElement} button
   */
  #edit(button) {
    const field = h('input', { class: 'field', type: 'text', 'aria-label': 'New tag', placeholder: 'New tag', maxlength: MAX_LENGTH, size: 14, autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', enterkeyhint: 'done' });
    const close = () => {
      if (form.isConnected) form.replaceWith(button);
    };
    const form = h('form', { class: 'tag-form', onsubmit: (event) => {
      event.preventDefault();
      const added = field.value.split(',').map((tag) => tag.trim()).filter((tag) => tag !== '' && !this.#tags.includes(tag));
      if (added.length > 0) this.#save((tags) => [...new Set([...tags, ...added])]);
      else close();
      button.focus({ preventScroll: true });
    } }, field, h('button', { class: 'button small', type: 'submit' }, 'Add'));
    field.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || event.isComposing) return;
      event.stopPropagation();
      close();
      button.focus({ preventScroll: true });
    });
    form.addEventListener('focusout', ({ relatedTarget }) => field.value.trim() === '' && !(relatedTarget instanceof Node && form.contains(relatedTarget)) && close());
    button.replaceWith(form);
    field.focus({ preventScroll: true });
  }

  /**
   * Changes the tags that the message has now: they may have changed since it was loaded.
   * @param {(tags: string[]) => string[]} change
   */
  async #save(change) {
    const { id, whole } = this.#message;
    if (this.#isSending || !whole) return;
    this.#isSending = true;
    try {
      const changed = await api.setTags(id, change((await api.whole(id)).tags));
      whole.tags = changed.tags;
      announce(changed.tags.length > 0 ? `Tags: ${changed.tags.join(', ')}` : 'No tags');
      this.dispatchEvent(new CustomEvent('tagged', { bubbles: true, detail: { id, tags: changed.tags } }));
      const hadFocus = this.contains(document.activeElement);
      const add = this.#draw();
      if (hadFocus) add.focus({ preventScroll: true });
    } catch (error) {
      toast(`The tags could not be changed. ${api.sentence(error)}`, { bad: true });
    } finally {
      this.#isSending = false;
    }
  }
}

customElements.define('tag-editor', TagEditor);
