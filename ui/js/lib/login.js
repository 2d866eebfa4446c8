// The login of the user: redirecting to the login page, and logging out.

import { serverPath, login } from './paths.js';

let isRedirecting = false;

/** Goes to the login page, which returns to the current page after the login. */
export function redirectToLogin() {
  // Several requests can be refused at once.
  if (isRedirecting) return;
  isRedirecting = true;
  location.assign(login(location));
}

/** Logs out and goes to the login page, or to the page that also ends the login at the identity provider. */
export async function logOut() {
  // The server closes live connections, which must not lead back to this page.
  isRedirecting = true;
  // The login page also reports a failed logout, so errors are ignored here.
  const response = await fetch(serverPath('logout'), { method: 'POST' }).catch(() => null);
  location.assign(response?.ok ? response.url : serverPath('login'));
}
