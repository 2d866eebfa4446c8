// <message-html>: the HTML of a message in a sandboxed frame without scripts, without the origin of the page, and without
// remote content until the user loads it. The server sanitizes the document of the frame.

/** @import { Message } from '../../types.js' */

import * as connection from '../../lib/connection.js';
import * as paths from '../../lib/paths.js';
import { fill, h } from '../../lib/dom.js';
import { visible } from '../../lib/visible.js';
import { choice, toggle } from './controls.js';
import { FrameFit } from './frame-fit.js';
import { scrollViewFirst } from './frame-scroll.js';
import { printHeight } from './print-height.js';
import { isAlwaysLoaded } from './remote-note.js';

/** @typedef {'light' | 'dark'} Scheme */
/** @typedef {'full' | 'tablet' | 'phone'} Width */

export class MessageHtml extends HTMLElement {
  #message;
  /** Most messages are designed for a white background. @type {Scheme} */
  #scheme = 'light';
  #isRemoteLoaded;
  /** True if the frame was loaded while the connection was lost. */
  #mayHaveFailed = false;
  #disconnected = new AbortController();
  #device = h('div', { class: 'device' });
  /** The frame receives all keys while it has the focus. A click anywhere outside of it returns the focus. */
  #keys = h('p', { class: 'frame-keys', title: 'The message has the keyboard focus. Click here or press Tab to use the shortcuts of this page.' }, 'The message has the keyboard focus. Click here to leave it.');
  /** @type {FrameFit} */
  #fit;
  #updateScrolling = () => {};
  /** The controls of this panel. @type {HTMLElement[]} */
  controls;

  /** @param {Message} message */
  constructor(message) {
    super();
    this.#message = message;
    this.#isRemoteLoaded = message.remote.length > 0 && isAlwaysLoaded();
    this.#fit = new FrameFit(message, this.#device, (isWider) => (fit.hidden = !isWider));
    const fit = toggle('fit', 'Fit to width', { pref: 'preview.fit', fallback: true, apply: (on) => (this.#fit.isOn = on) });
    fit.hidden = true;
    this.controls = [fit, ...this.#choices()];
  }

  connectedCallback() {
    this.#disconnected = new AbortController();
    const { signal } = this.#disconnected;
    if (!this.firstChild) fill(this, h('div', { class: 'stage' }, h('div', { class: 'stage-inner' }, this.#device), this.#keys));
    // The window loses the focus while a frame has it.
    const updateKeys = (/** @type {Event} */ { type }) => this.#keys.classList.toggle('shown', type === 'blur' && this.#device.contains(document.activeElement));
    window.addEventListener('blur', updateKeys, { signal });
    window.addEventListener('focus', updateKeys, { signal });
    connection.changes.addEventListener('change', () => this.#mayHaveFailed && !connection.isLost() && this.#load(), { signal });
    this.#fit.follow(signal);
    window.addEventListener('beforeprint', () => this.#device.checkVisibility() && this.#device.style.setProperty('--print-height', `${printHeight(this.#message.id)}px`), { signal });
    const view = this.closest('message-view');
    const tabs = this.closest('message-tabs');
    if (view instanceof HTMLElement && tabs instanceof HTMLElement) this.#updateScrolling = scrollViewFirst(() => this.#device.querySelector('iframe'), view, tabs, signal);
  }

  disconnectedCallback() {
    this.#disconnected.abort();
  }

  /**
   * Loads the document again, with its remote content or without.
   * @param {boolean} isLoaded
   */
  loadRemote(isLoaded) {
    this.#isRemoteLoaded = isLoaded;
    this.#load();
  }

  #choices() {
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
    return [widths, schemes];
  }

  /** Always creates a new frame: changing its URL would add an entry to the history. */
  #load() {
    const { id, subject } = this.#message;
    this.#device.dataset.scheme = this.#scheme;
    this.#mayHaveFailed = connection.isLost();
    fill(this.#device, h('iframe', {
      class: 'preview',
      title: `HTML of the message ${visible(subject)}`,
      sandbox: 'allow-popups allow-popups-to-escape-sandbox',
      referrerpolicy: 'no-referrer',
      src: paths.preview(id, { remote: this.#isRemoteLoaded, scheme: this.#scheme }),
    }));
    this.#fit.update();
    this.#updateScrolling();
  }
}

customElements.define('message-html', MessageHtml);
