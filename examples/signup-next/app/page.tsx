import { pending, proven } from "../lib/session";
import { wordsForEnded } from "../lib/words";
import { signOut } from "./actions";
import { NumberForm } from "./number-form";

export default async function Page({ searchParams }: { searchParams: Promise<{ ended?: string }> }) {
  const phone_number = await proven.read();
  if (phone_number !== undefined) {
    return (
      <main>
        <h1>Welcome</h1>
        <p>
          You are signed in as <strong>{phone_number}</strong>.
        </p>
        <form action={signOut}>
          <button type="submit">Sign out</button>
        </form>
      </main>
    );
  }
  const { ended } = await searchParams;
  return (
    <main>
      <h1>Create your account</h1>
      <p>We send a code to your phone, to see that the number is yours.</p>
      <NumberForm problem={ended === undefined ? "" : wordsForEnded(ended)} />
      {(await pending.read()) && (
        <p>
          <a href="/code">I have a code</a>
        </p>
      )}
    </main>
  );
}
