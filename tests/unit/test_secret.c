/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in command lines are masked, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/secret.h"

/* WORDS, parted by "|", masked as an argument vector. */
static const char *
masked(const char *words)
{
	static char text[2000];
	char copy[1000], *save = NULL;
	struct plumb_secret state = { 0 };

	text[0] = '\0';
	snprintf(copy, sizeof copy, "%s", words);
	for (char *word = strtok_r(copy, "|", &save); word; word = strtok_r(NULL, "|", &save)) {
		plumb_secret_mask(&state, word);
		strcat(strcat(text, *text ? "|" : ""), word);
	}
	return text;
}

static void
test_masked(void **state)
{
	static const char *const pairs[][2] = {
		{ "train.py|--api-key=s3cr3t", "train.py|--api-key=***" },
		{ "--token|abc|--lr|3", "--token|***|--lr|3" },
		{ "--hf_token|abc", "--hf_token|***" },
		{ "-password|x y z|out", "-password|***|out" },
		{ "--password=a b,c&d", "--password=***" },
		{ "env|PASSWORD=x1y2|MYSQL_PWD=abc|PGPASSWORD=abc|python",
		  "env|PASSWORD=***|MYSQL_PWD=***|PGPASSWORD=***|python" },
		{ "AWS_SECRET_ACCESS_KEY=abcd/efg+h", "AWS_SECRET_ACCESS_KEY=***" },
		{ "+wandb.api_key=abcdef", "+wandb.api_key=***" },
		{ "--apiKey|abcd", "--apiKey|***" },
		{ "-H|Authorization: Bearer abc.def", "-H|Authorization: Bearer ***" },
		{ "-H|X-Api-Key: abcd", "-H|X-Api-Key: ***" },
		{ "https://me:pass@host/x", "https://me:***@host/x" },
		{ "https://me:p@w@host/x", "https://me:***@host/x" },
		{ "https://host/x?a=1&token=abcd&b=2", "https://host/x?a=1&token=***&b=2" },
		{ "-u|me:secret", "-u|me:***" },
		{ "hf_abcdefghijklmnopqrstuvwxyz", "***" },
		{ "a=hf_abcdefghijklmnopqrstuvwxyz,b", "a=***,b" },
		{ "sk-proj-abc123DEF456ghi789", "***" },
		{ "x ghp_0123456789abcdefABCDEF y", "x *** y" },
		{ "AKIAIOSFODNN7EXAMPLE", "***" },
		{ "sh|-c|prog --token abc --lr 3", "sh|-c|prog --token *** --lr 3" },
		{ "-c|api_key = 'abc'; run(1)", "-c|api_key = '***'; run(1)" },
		{ "--config|{\"api_key\": \"abc\", \"lr\": 3}",
		  "--config|{\"api_key\": \"***\", \"lr\": 3}" },
		{ "export HF_TOKEN=abc; python x.py", "export HF_TOKEN=***; python x.py" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		assert_string_equal(masked(pairs[i][0]), pairs[i][1]);
}

static void
test_left_alone(void **state)
{
	static const char *const words[] = {
		"python|train.py|--lr|1e-3|--epochs|10",
		"--tokenizer|gpt2|--max-tokens|512|--max_token=5|--num-token|7",
		"--eos-token|</s>|--pad_token=<pad>",
		"--use-auth-token|train.py|--token=None|--no-password|x",
		"--key|gpu|--sort-key=name|--primary-key|3",
		"--password-file|/run/x|--token-count=3",
		"PWD=/home/me|OLDPWD=/home",
		"https://github.com/org/repo@v1|git@github.com:org/repo.git|ssh://git@host/x",
		"-u|train.py|--user|1000:1000",
		"-c|if token == 3: print(token)",
		"task-sk-learn|risk-adjusted|hf_transfer|eyJ",
		"model=meta/llama|http://127.0.0.1:8080/v1",
		"--author|me|--authority=x|--keyboard|a|monkey=1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		assert_string_equal(masked(words[i]), words[i]);
}

/* Masking twice changes nothing, and no text grows. */
static void
test_idempotent(void **state)
{
	char line[] = "prog --token a --password=bc https://u:p@h/ AKIAIOSFODNN7EXAMPLE";
	size_t length = strlen(line);
	char once[sizeof line];

	(void)state;
	plumb_secret_mask_line(line);
	assert_true(strlen(line) <= length);
	assert_string_equal(line, "prog --token * --password=** https://u:*@h/ ***");
	strcpy(once, line);
	plumb_secret_mask_line(line);
	assert_string_equal(line, once);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_masked),
		cmocka_unit_test(test_left_alone),
		cmocka_unit_test(test_idempotent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
