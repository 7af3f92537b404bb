// SPDX-License-Identifier: GPL-2.0
/**
 * fine() - whole
 * @given: number
 * Return: another.
 */
int fine(int given)
{
	return given;
}

/**
 * partly() - with a parameter that is not described
 * @given: number
 * Return: another.
 */
int partly(int given, int more)
{
	return given + more; /* SEED: kernel-doc is late */
}
