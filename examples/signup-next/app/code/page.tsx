import { redirect } from "next/navigation";
import { pending, proven } from "../../lib/session";
import { CodeForm } from "./code-form";

export default async function Page() {
  const asked = await pending.read();
  if (asked === undefined) redirect((await proven.read()) === undefined ? "/?ended=no_session" : "/");
  return (
    <main>
      <h1>Type the code</h1>
      <p>
        It was sent to <strong>{asked.phone_number}</strong>. <a href="/">Change</a>
      </p>
      <CodeForm answer={asked.answer} />
    </main>
  );
}
