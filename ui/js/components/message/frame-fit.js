// Scales a frame down to the width of its device, for messages that are wider and do not adapt.

/** @import { Message } from '../../types.js' */

import * as api from '../../lib/api.js';
import { neededWidth } from './fit-width.js';

/** Wider devices show every message as it is. */
const MAX_DEVICE_WIDTH = 640;

/** The HTML of a larger message is not loaded to find its width, in bytes. */
const MAX_BYTES = 2_000_000;

export class FrameFit {
  #message;
  #device;
  #onChange;
  #isOn = true;
  /** The HTML, once it is needed. @type {Promise<string> | null} */
  #html = null;
  /** The width that the message needs, or null. @type {number | null} */
  #needed = null;
  /** The width of the device for which the last decision was made. */
  #decidedFor = 0;

  /**
   * @param {Message} message
   * @param {HTMLElement} device The element that contains the frame.
   * @param {(isWider: boolean) => void} onChange Called with whether the message is wider than its device.
   */
  constructor(message, device, onChange) {
    this.#message = message;
    this.#device = device;
    this.#onChange = onChange;
  }

  /** @param {boolean} isOn Whether wider messages are scaled. */
  set isOn(isOn) {
    this.#isOn = isOn;
    this.#apply();
  }

  /**
   * Follows the size of the device.
   * @param {AbortSignal} signal
   */
  follow(signal) {
    const observer = new ResizeObserver(() => this.#decide(signal));
    observer.observe(this.#device);
    signal.addEventListener('abort', () => observer.disconnect());
  }

  /** Scales a new frame. */
  update() {
    this.#apply();
  }

  /** @param {AbortSignal} signal */
  async #decide(signal) {
    const width = this.#device.clientWidth;
    if (width !== this.#decidedFor) {
      this.#decidedFor = width;
      const html = width > 0 && width < MAX_DEVICE_WIDTH && this.#isSmall() ? await (this.#html ??= api.body(this.#message.id, 'html', signal).catch(() => '')) : '';
      if (signal.aborted || width !== this.#device.clientWidth) return;
      this.#needed = html ? neededWidth(html, width) : null;
      this.#device.dataset.fits = String(this.#needed === null);
      this.#onChange(this.#needed !== null);
    }
    this.#apply();
  }

  #isSmall() {
    return this.#message.parts.reduce((sum, { role, size }) => sum + (role === 'html' ? size : 0), 0) <= MAX_BYTES;
  }

  #apply() {
    const frame = this.#device.querySelector('iframe');
    if (!frame) return;
    const { clientWidth, clientHeight } = this.#device;
    const scale = this.#isOn && this.#needed !== null ? Math.min(1, clientWidth / this.#needed) : 1;
    const isScaled = scale < 1;
    frame.classList.toggle('scaled', isScaled);
    frame.style.width = isScaled ? `${clientWidth / scale}px` : '';
    frame.style.height = isScaled ? `${clientHeight / scale}px` : '';
    frame.style.transform = isScaled ? `scale(${scale})` : '';
  }
}
