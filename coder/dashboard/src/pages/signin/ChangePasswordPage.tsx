// Password reset: a new password with the code from the mail.
import { Link, useNavigate, useSearchParams } from "react-router";

import { post } from "../../api/client";
import { Button } from "../../ui/Button";
import { Failure } from "../../ui/Failure";
import { TextField } from "../../ui/forms/Field";
import { useForm } from "../../ui/forms/form";
import { toast } from "../../ui/toast";
import { useTitle } from "../../ui/title";
import { SignInCard } from "./SignInCard";

export function ChangePasswordPage() {
  useTitle("Reset Password");
  const [params] = useSearchParams();
  const navigate = useNavigate();
  const start = {
    email: params.get("email") ?? "",
    one_time_passcode: params.get("otp") ?? "",
    password: "",
    repeated: "",
  };
  const form = useForm(
    start,
    async ({ repeated: _, ...body }) => {
      await post("/api/v2/users/otp/change-password", body);
      toast.done("Password updated successfully.");
      await navigate("/login");
    },
    (values) =>
      values.password === values.repeated ? {} : { repeated: "The passwords do not match." },
  );
  return (
    <SignInCard
      title="Choose a new password"
      foot={
        <Link className="underline" to="/reset-password">
          Send another code
        </Link>
      }
    >
      <form className="flex flex-col gap-4" onSubmit={form.submit}>
        {form.error ? <Failure error={form.error} /> : null}
        <TextField
          label="Email"
          type="email"
          autoComplete="username"
          required
          value={form.values.email}
          problem={form.problem("email")}
          onChange={(value) => form.set("email", value)}
        />
        <TextField
          label="One-time code"
          autoComplete="one-time-code"
          required
          value={form.values.one_time_passcode}
          problem={form.problem("one_time_passcode")}
          onChange={(value) => form.set("one_time_passcode", value)}
        />
        <TextField
          label="Password"
          type="password"
          autoComplete="new-password"
          required
          value={form.values.password}
          problem={form.problem("password")}
          onChange={(value) => form.set("password", value)}
        />
        <TextField
          label="Confirm password"
          type="password"
          autoComplete="new-password"
          required
          value={form.values.repeated}
          problem={form.problem("repeated")}
          onChange={(value) => form.set("repeated", value)}
        />
        <Button type="submit" variant="primary" busy={form.busy}>
          Change password
        </Button>
      </form>
    </SignInCard>
  );
}
