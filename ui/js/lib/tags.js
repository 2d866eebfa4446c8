// The tags of all messages, with their counts, and the color of a tag.

/** @import { Summary, Tag } from '../types.js' */

import * as api from './api.js';
import { LiveData } from './live-data.js';

const HUES = 16;

export class Tags extends LiveData {
  /** In the order of their names. @type {Tag[]} */
  all = [];
  /** The newest message with tags that was received. */
  #newest = 0;

  /**
   * @override
   * @param {AbortSignal} signal
   */
  async request(signal) {
    this.all = (await api.tags(signal)).sort((a, b) => a.name.localeCompare(b.name));
  }

  /**
   * @override
   * @param {Summary} message
   */
  isMissing({ tags, received }) {
    const time = Date.parse(received);
    if (tags.length === 0 || time <= this.#newest) return false;
    this.#newest = time;
    return true;
  }
}

/**
 * Gives an element the color of a tag, which depends on its name only. The style sheet uses the hue.
 * @template {HTMLElement} T
 * @param {T} element
 * @param {string} tag
 * @returns {T}
 */
export function colorTag(element, tag) {
  // FNV-1a.
  let hash = 0x811c9dc5;
  for (const character of tag.toLowerCase()) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  element.style.setProperty('--hue', String(((hash % HUES) * 360) / HUES));
  return element;
}
