// The tags of all messages, with their counts, and the color of a tag.

/** @import { Summary, Tag } from '../types.js' */

import * as api from './api.js';
import { LiveData } from './live-data.js';

const HUES = 12;

export class Tags extends LiveData {
  /** In the order of their names. @type {Tag[]} */
  all = [];

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
  concerns({ tags }) {
    return tags.length > 0;
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
  let hash = 0;
  for (const character of tag.toLowerCase()) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) >>> 0;
  element.style.setProperty('--hue', String(((hash % HUES) * 360) / HUES));
  return element;
}
