export default function Page() {
  return <h1>A project that has phoneproof installed</h1>;
}
