// What a page of the dashboard is: it fills its root once, and may be refreshed.
export interface View {
  title: string;
  /** Asks the service again; main.ts calls it at once and then every everyMs while it is shown. */
  refresh?: () => Promise<void>;
  everyMs?: number;
  /** What it shows before the first refresh has ended is of use. */
  showsAtOnce?: boolean;
  /** Lets go of streams and listeners. */
  close?: () => void;
}
