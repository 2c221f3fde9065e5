import type { ComponentChildren } from "preact";
import type { Resource } from "../api/resource.ts";
import { whyNot } from "../state/session.ts";
import { Button } from "./button.tsx";
import { PageHead } from "./card.tsx";
import { Shown } from "./shown.tsx";
import { type FormEnd, useForm } from "./use-form.ts";

interface ListPageProps<Value> {
  readonly title: string;
  readonly below: string;
  readonly of: Resource<Value>;
  /** What a server that answers 404 does not offer. */
  readonly offers?: string;
  /** The button that opens the form. */
  readonly action: string;
  readonly form: (end: FormEnd) => ComponentChildren;
  readonly children: (data: Value) => ComponentChildren;
}

/** A list that people can add to. */
export function ListPage<Value>({ title, below, of, offers, action, form, children }: ListPageProps<Value>) {
  const { form: isOpen, open, end } = useForm<true>(of.reload);
  return (
    <>
      <PageHead title={title} below={below}>
        <Button icon="plus" whyNot={whyNot("operate")} onClick={() => open(true)}>
          {action}
        </Button>
      </PageHead>
      <Shown of={of} what="The list" {...(offers !== undefined && { offers })}>
        {children}
      </Shown>
      {isOpen && form(end)}
    </>
  );
}
