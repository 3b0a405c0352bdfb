// The identity that is signed in, which all tabs of this browser share. The session is a cookie that
// no script can read. So the page asks the server, and tabs tell each other when it may have changed.
import { endSession, getCaller, getSignIn, startSession, type Caller, type SignInWays } from "./api";

const tabs = new BroadcastChannel("npuc-session");
/** Kept while this tab is at the provider's page. */
const AWAY = "npuc-away";
let now: Caller | undefined;
let problem = "";

/** Who this is, as last asked; undefined: not known. */
export const caller = () => now;

/** Whether the server would let this one do it. True where it is not known: the server decides. */
export const may = (...rights: string[]) => !now || rights.some((right) => now!.rights?.includes(right));

export async function askCaller(): Promise<Caller | undefined> {
  now = undefined;
  try { now = await getCaller(); } catch { /* the page itself says what is wrong */ }
  return now;
}

/** The ways to sign in; undefined: not known. The server states what went wrong at the provider once, so it is kept here. */
export async function askWays(): Promise<SignInWays | undefined> {
  const ways = await getSignIn().catch(() => undefined);
  problem = ways?.problem ?? problem;
  return ways;
}

/** What went wrong at the provider, for the one that shows it; empty: nothing. */
export function takeProblem(): string {
  const text = problem;
  problem = "";
  return text;
}

/** Goes to the provider's page, which leads back to this tab's address. */
export function goToProvider() {
  sessionStorage.setItem(AWAY, "1");
  location.assign(`/auth/start?to=${encodeURIComponent(`/${location.hash}`)}`);
}

/** Tells the other tabs, if this one comes back from the provider's page. */
export function comeBack() {
  if (!sessionStorage.getItem(AWAY)) return;
  sessionStorage.removeItem(AWAY);
  if (now) tabs.postMessage("changed");
}

/** By a token, or else by the certificate that the browser has shown. */
export async function signIn(token = "") {
  await startSession(token);
  tabs.postMessage("changed");
}

export async function signOut() {
  await endSession();
  tabs.postMessage("changed");
}

/** Another tab has signed in or out. */
export const onChange = (act: () => void) => { tabs.onmessage = act; };
