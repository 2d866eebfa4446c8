// Desktop notifications of new messages, if the user has enabled them.

/** @import { Summary } from '../types.js' */

import * as prefs from './prefs.js';
import { address } from './format.js';
import { go } from './router.js';
import { toast } from './feedback.js';
import { visible } from './visible.js';

/** The minimum time between two notifications, in milliseconds. */
const MIN_INTERVAL_MS = 2_000;
let last = -MIN_INTERVAL_MS;

/** Returns whether notifications are enabled and allowed by the browser. */
export const areEnabled = () => prefs.read('notices', false) && globalThis.Notification?.permission === 'granted';

/** Enables or disables notifications; the browser may ask the user for permission. Returns whether they are enabled. */
export async function toggle() {
  if (areEnabled()) {
    prefs.write('notices', false);
    return false;
  }
  if (!globalThis.Notification) {
    toast('The browser allows desktop notifications on secure pages only. Open Restante by HTTPS or on localhost.', { bad: true });
    return false;
  }
  const allowed = (await Notification.requestPermission()) === 'granted';
  prefs.write('notices', allowed);
  if (!allowed) toast('The browser blocks desktop notifications for this page. Allow them in the settings of the browser.', { bad: true });
  return allowed;
}

/**
 * Shows a notification of a message, unless the page is visible and has the focus.
 * @param {Summary} message
 * @param {string} path The page of the message.
 */
export function notify(message, path) {
  if (!areEnabled() || (document.visibilityState === 'visible' && document.hasFocus())) return;
  if (performance.now() - last < MIN_INTERVAL_MS) return;
  last = performance.now();
  try {
    const notification = new Notification(visible(address(message.from).name), { body: visible(message.subject), tag: message.id });
    notification.onclick = () => {
      window.focus();
      go(path);
      notification.close();
    };
  } catch {
    // Some browsers have the class, but its constructor throws.
  }
}
