import type { ReactNode } from "react";
import "../../signup-express/public/style.css";

export const metadata = { title: "Create your account", icons: "data:," };

export default function Layout({ children }: { children: ReactNode }) {
  return (
    <html lang="en">
      <body>{children}</body>
    </html>
  );
}
