// <message-html>: a message's HTML in a frame without script, without our origin, and without anything from elsewhere
// until it is asked for. The frame's document comes from the server, which has made it harmless.

/** @import { Message } from '../../types.js' */

import * as paths from '../../lib/paths.js';
import { fill, h } from '../../lib/dom.js';
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
  #device = h('div', { class: 'device' });
  #note = h('p', { class: 'note remote-note' });

  /** @param {Message} message */
  constructor(message) {
    super();
    this.#message = message;
  }

  connectedCallback() {
    if (this.firstChild) return;
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
    fill(this,
      h('div', { class: 'panel-bar' }, widths, h('span', { class: 'spread' }), schemes),
      this.#message.remote.length > 0 && this.#note,
      h('div', { class: 'stage' }, this.#device));
  }

  /** Always a frame of its own: one that is sent elsewhere would leave steps behind the browser's back button. */
  #load() {
    const { mailbox, id, subject } = this.#message;
    this.#device.dataset.scheme = this.#scheme;
    fill(this.#device, h('iframe', {
      class: 'preview',
      title: `HTML of the message ${visible(subject)}`,
      sandbox: 'allow-popups allow-popups-to-escape-sandbox',
      referrerpolicy: 'no-referrer',
      src: paths.preview(mailbox, id, { remote: this.#remote, scheme: this.#scheme }),
    }));
  }

  #tellRemote() {
    const { remote } = this.#message;
    const first = remote.slice(0, FIRST_HOSTS).map(visible).join(', ');
    const hosts = remote.length > FIRST_HOSTS ? `${first} and ${count(remote.length - FIRST_HOSTS)} more` : first;
    const text = h('span', { title: remote.map(visible).join('\n') }, `Remote content from ${hosts} is ${this.#remote ? 'loaded, this time' : 'not loaded'}.`);
    const once = h('button', { class: 'button small', type: 'button', disabled: this.#remote, onclick: () => {
      this.#remote = true;
      this.#load();
      this.#tellRemote();
    } }, 'Load once');
    fill(this.#note, icon('shield'), text, h('span', { class: 'spread' }), once);
  }
}

customElements.define('message-html', MessageHtml);
