/* SPDX-License-Identifier: Apache-2.0 */
int torture_function(int x);
int
torture_function(int x)
{
	return x * x;
}
