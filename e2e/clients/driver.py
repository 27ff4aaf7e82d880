# SPDX-License-Identifier: Apache-2.0
"""Makes calls with a client library as its documentation shows it.

driver.py CLIENT URL writes "ready" once the library is loaded. Then, for each line of JSON on standard input, it makes one call
and writes one line of JSON: what a program that uses the library would see of it.
"""

import json
import sys
import time


def of_openai(url):
    import openai

    client = openai.OpenAI(base_url=url + "/openai/v1", api_key="key")

    def call(c):
        options = {"model": model(c), "stream": c["stream"], "extra_headers": c["headers"]}
        if c.get("timeout"):
            options["timeout"] = c["timeout"]
        if c.get("responses"):
            return events(client.responses.create(input="hi", max_output_tokens=c["max_tokens"], **options))
        if c.get("usage"):
            options["stream_options"] = {"include_usage": True}
        return chat(c, client.chat.completions.create(messages=messages, max_tokens=c["max_tokens"], **options))

    return call


def of_litellm(url):
    import litellm

    litellm.suppress_debug_info = True

    def call(c):
        options = {"timeout": c["timeout"]} if c.get("timeout") else {}
        if c.get("num_retries"):
            options["num_retries"] = c["num_retries"]
        if c.get("usage"):
            options["stream_options"] = {"include_usage": True}
        answer = litellm.completion(
            model="openai/" + model(c), api_base=url + "/openai/v1", api_key="key",
            messages=messages, max_tokens=c["max_tokens"], stream=c["stream"], extra_headers=c["headers"], **options
        )
        return chat(c, answer)

    return call


def chat(c, answer):
    """Reads a chat completion in OpenAI's form."""
    if not c["stream"]:
        return {"text": answer.choices[0].message.content, "usage": answer.usage is not None}
    deltas, usage = [], False
    for chunk in answer:
        usage = usage or getattr(chunk, "usage", None) is not None
        deltas += [choice.delta.content for choice in chunk.choices if choice.delta.content]
    return {"text": "".join(deltas), "deltas": len(deltas), "usage": usage}


def events(stream):
    """Reads a stream of the Responses API."""
    deltas, usage = [], False
    for event in stream:
        if event.type == "response.output_text.delta":
            deltas.append(event.delta)
        if event.type == "response.completed":
            usage = event.response.usage is not None
    return {"text": "".join(deltas), "deltas": len(deltas), "usage": usage}


def of_langchain(url):
    from langchain_openai import ChatOpenAI

    def call(c):
        options = {"timeout": c["timeout"]} if c.get("timeout") else {}
        if c.get("usage"):
            options["stream_usage"] = True
        chats = ChatOpenAI(
            model=model(c), base_url=url + "/openai/v1", api_key="key", max_tokens=c["max_tokens"], default_headers=c["headers"], **options
        )
        if not c["stream"]:
            answer = chats.invoke("hi")
            return {"text": answer.content, "usage": answer.usage_metadata is not None}
        chunks = list(chats.stream("hi"))
        deltas = [chunk.content for chunk in chunks if chunk.content]
        return {"text": "".join(deltas), "deltas": len(deltas), "usage": any(chunk.usage_metadata for chunk in chunks)}

    return call


def of_anthropic(url):
    import anthropic

    client = anthropic.Anthropic(base_url=url + "/anthropic", api_key="key")

    def call(c):
        options = {"timeout": c["timeout"]} if c.get("timeout") else {}
        options |= {"model": model(c, "claude-opus-4-6"), "messages": messages, "max_tokens": c["max_tokens"], "extra_headers": c["headers"]}
        if not c["stream"]:
            answer = client.messages.create(**options)
            return {"text": answer.content[0].text, "usage": answer.usage.output_tokens > 0}
        with client.messages.stream(**options) as stream:
            deltas = list(stream.text_stream)
            usage = stream.get_final_message().usage.output_tokens > 0
        return {"text": "".join(deltas), "deltas": len(deltas), "usage": usage}

    return call


def model(c, usual="gpt-4o"):
    return c.get("model") or usual


messages = [{"role": "user", "content": "hi"}]
clients = {"openai-python": of_openai, "litellm": of_litellm, "langchain-openai": of_langchain, "anthropic-python": of_anthropic}


def main(name, url):
    call = clients[name](url)
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.monotonic()
        try:
            said = {"ok": True, **call(json.loads(line))}
        except Exception as e:
            said = {"ok": False, "error": type(e).__name__, "status": getattr(e, "status_code", 0), "message": str(e)}
        print(json.dumps({**said, "seconds": time.monotonic() - began}), flush=True)


main(*sys.argv[1:])
