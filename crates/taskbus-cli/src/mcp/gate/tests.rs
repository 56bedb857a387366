//! What the gate does about every kind of line.
#![expect(clippy::needless_pass_by_value, reason = "ids read better at the calls")]

use super::*;

fn verdicts(input: &[u8]) -> Vec<Verdict> {
    let mut gate = Gate::default();
    let mut verdicts = gate.push(input);
    verdicts.extend(gate.end());
    verdicts
}

#[track_caller]
fn only(input: &str) -> Verdict {
    let mut verdicts = verdicts(input.as_bytes());
    assert_eq!(verdicts.len(), 1, "{verdicts:?}");
    verdicts.remove(0)
}

#[track_caller]
fn error(input: &str, id: Value, code: i64) {
    let Verdict::Answer(answer) = only(input) else { panic!("passed on: {input}") };
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{input}: {answer}");
}

#[track_caller]
fn refused_call(input: &str, id: Value, message: &str) {
    let Verdict::Answer(answer) = only(input) else { panic!("passed on: {input}") };
    let result = &answer["result"];
    assert_eq!((&answer["id"], &result["isError"]), (&id, &json!(true)), "{answer}");
    assert_eq!(result["structuredContent"]["code"], "validation", "{answer}");
    let said = result["structuredContent"]["message"].as_str().unwrap();
    assert!(said.contains(message), "{said}");
    assert_eq!(
        serde_json::from_str::<Value>(result["content"][0]["text"].as_str().unwrap()).unwrap(),
        result["structuredContent"]
    );
}

fn call(arguments: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#)
}

#[track_caller]
fn passed(input: &str) -> Value {
    match only(input) {
        Verdict::Request { message, .. } | Verdict::Notification(message) => message,
        Verdict::Answer(answer) => panic!("{input}: {answer}"),
    }
}

#[test]
fn ordinary_messages_pass_unchanged() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","arguments":{"n":9007199254740993}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    ] {
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(passed(text), expected);
        assert_eq!(passed(&format!("\u{feff} {text} \r")), expected);
    }
}

#[test]
fn nothing_and_answers_are_passed_over() {
    for text in
        ["", "\n\n\r\n", "  \t", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, r#"{"jsonrpc":"2.0","id":null,"error":{}}"#]
    {
        assert_eq!(verdicts(text.as_bytes()), [], "{text}");
    }
}

#[test]
fn what_is_no_message_is_said_at_once() {
    error("{", json!(null), PARSE_ERROR);
    error("hello", json!(null), PARSE_ERROR);
    error("{'id':1}", json!(null), PARSE_ERROR);
    error("[]", json!(null), INVALID_REQUEST);
    error(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, json!(null), INVALID_REQUEST);
    error("5", json!(null), INVALID_REQUEST);
    error(r#"{"jsonrpc":"2.0","id":1}"#, json!(1), INVALID_REQUEST);
    error(r#"{"jsonrpc":"2.0","id":1,"method":5}"#, json!(1), INVALID_REQUEST);
    error(r#"{"id":1,"method":"ping"}"#, json!(1), INVALID_REQUEST);
    for id in ["null", "1.5", "true", "[1]", "{}", "9223372036854775808"] {
        error(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#), json!(null), INVALID_REQUEST);
    }
    error(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, json!(null), INVALID_REQUEST);
    error(r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel"}"#, json!(1), METHOD_NOT_FOUND);
    error(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#, json!(1), INVALID_PARAMS);
}

#[test]
fn missing_arguments_are_none() {
    let expected = json!({"name": "t", "arguments": {}});
    for params in [
        r#"{"name":"t"}"#,
        r#"{"name":"t","arguments":null}"#,
        r#"{"name":"t","arguments":""}"#,
        r#"{"name":"t","arguments":"{}"}"#,
    ] {
        let message = passed(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#));
        assert_eq!(message["params"], expected);
    }
    assert_eq!(passed(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}"#)["params"], json!({}));
    assert_eq!(passed(&call(r#""{\"a\":1}""#))["params"]["arguments"], json!({"a": 1}));
}

#[test]
fn calls_that_cannot_be_read_are_refused_as_calls() {
    refused_call(&call(r#"{"a":"\ud800"}"#), json!(5), "half of a surrogate pair");
    refused_call(&call(r#"{"a":1e999}"#), json!(5), "too large");
    refused_call(&call(r#"{"a":1,"a":2}"#), json!(5), "\"a\" stands twice");
    refused_call(&call(&format!("{}1{}", "[".repeat(40), "]".repeat(40))), json!(5), "deeper than 32");
    refused_call(&call("[1]"), json!(5), "must be an object, not [1]");
    refused_call(&call("5"), json!(5), "must be an object, not 5");
    refused_call(&call(r#""{\"a\":1,\"a\":2}""#), json!(5), "stands twice");
}

#[test]
fn the_newer_protocol_gets_its_result_type() {
    let text = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"t","arguments":5,
        "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#
        .replace('\n', "");
    let Verdict::Answer(answer) = only(&text) else { panic!() };
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[test]
fn the_limit_on_lines_holds_at_the_edge() {
    let frame = call(r#"{"a":""}"#).len();
    let line = |bytes: usize| call(&format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - frame)));
    assert!(matches!(only(&line(limits::REQUEST_BYTES_MAX)), Verdict::Request { .. }));
    refused_call(&line(limits::REQUEST_BYTES_MAX + 1), json!(5), "has 1048577 bytes; at most 1048576 are read");
    let after = format!("{}\n{}\n", line(3_000_000), r#"{"jsonrpc":"2.0","id":6,"method":"ping"}"#);
    assert_eq!(verdicts(after.as_bytes()).len(), 2);
}
