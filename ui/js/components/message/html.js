// <message-html>: a message's HTML in a frame without script, without our origin, and without anything from elsewhere
// until it is asked for. The frame's document comes from the server, which has made it harmless.

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
  /** Mails are made for white paper. @type {Scheme} */
  #scheme = 'light';
  #remote = false;
  /** Whether the frame was asked for while nobody answered. */
  #isDoubtful = false;
  #gone = new AbortController();
  #device = h('div', { class: 'device' });
  #stage = h('div', { class: 'stage' }, this.#device);
  /** Keys that are pressed in the frame are not ours. A click anywhere else, thus here, too, is the way back. */
  #keys = h('span', { class: 'frame-keys cut', title: 'Keys that you press go to the mail now. Click here, or leave the mail by Tab, to use the shortcuts of this page.' }, 'Keys go to the mail: click here to leave');
  #said = h('span', { role: 'status' });
  #once = h('button', { class: 'button small', type: 'button', onclick: () => this.#loadRemote() }, 'Load once');

  /** @param {Message} message */
  constructor(message) {
    super();
    this.#message = message;
  }

  connectedCallback() {
    if (!this.firstChild) this.#build();
    this.#gone = new AbortController();
    const { signal } = this.#gone;
    // While a frame has the focus, the window around it has not.
    const tell = (/** @type {Event} */ { type }) => this.#keys.classList.toggle('shown', type === 'blur' && this.#device.contains(document.activeElement));
    window.addEventListener('blur', tell, { signal });
    window.addEventListener('focus', tell, { signal });
    connection.changes.addEventListener('change', () => this.#isDoubtful && !connection.isLost() && this.#load(), { signal });
  }

  disconnectedCallback() {
    this.#gone.abort();
  }

  #build() {
    const widths = choice('Width of the preview', /** @type {{ value: Width, label: string, icon: 'screen' | 'tablet' | 'phone' }[]} */ ([
      { value: 'full', label: 'Full width', icon: 'screen' },
      { value: 'tablet', label: 'Tablet', icon: 'tablet' },
      { value: 'phone', label: 'Phone', icon: 'phone' },
    ]), { pref: 'preview.width', apply: (width) => (this.#device.dataset.width = width) });
    widths.classList.add('widths');
    const schemes = choice('Colours of the preview', /** @type {{ value: Scheme, label: string, icon: Scheme }[]} */ ([
      { value: 'light', label: 'Light', icon: 'light' },
      { value: 'dark', label: 'Dark', icon: 'dark' },
    ]), { pref: 'preview.scheme', apply: (scheme) => {
      this.#scheme = scheme;
      this.#load();
    } });
    this.#tellRemote();
    const note = h('p', { class: 'note remote-note' }, icon('shield'), this.#said, h('span', { class: 'spread' }), this.#once);
    fill(this, h('div', { class: 'panel-bar' }, widths, h('span', { class: 'spread' }, this.#keys), schemes), this.#message.remote.length > 0 && note, this.#stage);
  }

  /** Always a frame of its own: one that is sent elsewhere would leave steps behind the browser's back button. */
  #load() {
    const { mailbox, id, subject } = this.#message;
    this.#device.dataset.scheme = this.#scheme;
    this.#isDoubtful = connection.isLost();
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
    this.#tellRemote();
  }

  #tellRemote() {
    const { remote } = this.#message;
    const first = remote.slice(0, FIRST_HOSTS).map(visible).join(', ');
    const hosts = remote.length > FIRST_HOSTS ? `${first} and ${count(remote.length - FIRST_HOSTS)} more` : first;
    this.#said.textContent = `Remote content from ${hosts} is ${this.#remote ? 'loaded, this time' : 'not loaded'}.`;
    this.#said.title = remote.map(visible).join('\n');
    // Not disabled: it has the focus.
    set(this.#once, { 'aria-disabled': this.#remote && 'true' });
  }
}

customElements.define('message-html', MessageHtml);
