// <message-html>: the HTML of a message in a sandboxed frame without scripts, without the origin of the page, and without
// remote content until the user loads it. The server sanitizes the document of the frame.

/** @import { Message } from '../../types.js' */

import * as connection from '../../lib/connection.js';
import * as paths from '../../lib/paths.js';
import { fill, h, set } from '../../lib/dom.js';
import { count } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';
import { choice } from './controls.js';

const FIRST_HOSTS = 3;

/** @typedef {'light' | 'dark'} Scheme */
/** @typedef {'full' | 'tablet' | 'phone'} Width */

export class MessageHtml extends HTMLElement {
  #message;
  /** Most messages are designed for a white background. @type {Scheme} */
  #scheme = 'light';
  #remote = false;
  /** True if the frame was loaded while the connection was lost. */
  #mayHaveFailed = false;
  #disconnected = new AbortController();
  #device = h('div', { class: 'device' });
  #stage = h('div', { class: 'stage' }, this.#device);
  /** The frame receives all keys while it has the focus. A click anywhere outside of it returns the focus. */
  #keys = h('span', { class: 'frame-keys truncate', title: 'The message has the keyboard focus. Click here or press Tab to use the shortcuts of this page.' }, 'The message has the keyboard focus. Click here to leave it.');
  #remoteText = h('span', { role: 'status' });
  #loadButton = h('button', { class: 'button small', type: 'button', onclick: () => this.#loadRemote() }, 'Load once');

  /** @param {Message} message */
  constructor(message) {
    super();
    this.#message = message;
  }

  connectedCallback() {
    if (!this.firstChild) this.#build();
    this.#disconnected = new AbortController();
    const { signal } = this.#disconnected;
    // The window loses the focus while a frame has it.
    const updateKeys = (/** @type {Event} */ { type }) => this.#keys.classList.toggle('shown', type === 'blur' && this.#device.contains(document.activeElement));
    window.addEventListener('blur', updateKeys, { signal });
    window.addEventListener('focus', updateKeys, { signal });
    connection.changes.addEventListener('change', () => this.#mayHaveFailed && !connection.isLost() && this.#load(), { signal });
  }

  disconnectedCallback() {
    this.#disconnected.abort();
  }

  #build() {
    const widths = choice('Width of the preview', /** @type {{ value: Width, label: string, icon: 'screen' | 'tablet' | 'phone' }[]} */ ([
      { value: 'full', label: 'Full width', icon: 'screen' },
      { value: 'tablet', label: 'Tablet', icon: 'tablet' },
      { value: 'phone', label: 'Phone', icon: 'phone' },
    ]), { pref: 'preview.width', apply: (width) => (this.#device.dataset.width = width) });
    widths.classList.add('widths');
    const schemes = choice('Color scheme of the preview', /** @type {{ value: Scheme, label: string, icon: Scheme }[]} */ ([
      { value: 'light', label: 'Light', icon: 'light' },
      { value: 'dark', label: 'Dark', icon: 'dark' },
    ]), { pref: 'preview.scheme', apply: (scheme) => {
      this.#scheme = scheme;
      this.#load();
    } });
    this.#updateRemoteText();
    const note = h('p', { class: 'note remote-note' }, icon('shield'), this.#remoteText, h('span', { class: 'spread' }), this.#loadButton);
    fill(this, h('div', { class: 'panel-bar' }, widths, h('span', { class: 'spread' }, this.#keys), schemes), this.#message.remote.length > 0 && note, this.#stage);
  }

  /** Always creates a new frame: changing its URL would add an entry to the history. */
  #load() {
    const { mailbox, id, subject } = this.#message;
    this.#device.dataset.scheme = this.#scheme;
    this.#mayHaveFailed = connection.isLost();
    fill(this.#device, h('iframe', {
      class: 'preview',
      title: `HTML of the message ${visible(subject)}`,
      sandbox: 'allow-popups allow-popups-to-escape-sandbox',
      referrerpolicy: 'no-referrer',
      src: paths.preview(mailbox, id, { remote: this.#remote, scheme: this.#scheme }),
    }));
  }

  #loadRemote() {
    if (this.#remote) return;
    this.#remote = true;
    this.#load();
    this.#updateRemoteText();
  }

  #updateRemoteText() {
    const { remote } = this.#message;
    const first = remote.slice(0, FIRST_HOSTS).map(visible).join(', ');
    const hosts = remote.length > FIRST_HOSTS ? `${first} and ${count(remote.length - FIRST_HOSTS)} more` : first;
    this.#remoteText.textContent = `Remote content from ${hosts} is ${this.#remote ? 'loaded for this view' : 'not loaded'}.`;
    this.#remoteText.title = remote.map(visible).join('\n');
    // Not `disabled`, because the button has the focus.
    set(this.#loadButton, { 'aria-disabled': this.#remote && 'true' });
  }
}

customElements.define('message-html', MessageHtml);
